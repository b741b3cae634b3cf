package main

import (
	"fmt"
	"strings"
)

// Budgets of the design, on 2 cores, with a model that takes no time and the durable store. They are goals
// to compare with: missing one is no error, because a machine that does other things misses them too.
const (
	budgetStart   = 40.0   // ms to the first poll, files warm
	budgetPSS     = 32.0   // MiB, idle
	budgetAnon    = 8.0    // MiB of it anonymous
	budgetP50     = 2.0    // ms added to a reply, one chat
	budgetP99     = 6.0    // ms
	budgetAlone   = 1.5    // ms CPU a turn there
	budgetRate    = 2500.0 // turns/s in 50 busy chats
	budgetTurnCPU = 0.5    // ms CPU a turn there
	budgetSession = 2.0    // KiB an idle session
	flat          = 1.10   // second half of a soak to its first: pools of connections breathe, leaks grow
)

// report is what a run found; a phase that did not run is nil.
type report struct {
	Name     string   `json:"name"`
	Command  string   `json:"command"`
	CPUs     int      `json:"cpus"`
	Start    *started `json:"start,omitempty"`
	Idle     *idled   `json:"idle,omitempty"`
	Five     *idled   `json:"five,omitempty"`
	Latency  *talked  `json:"latency,omitempty"`
	Load     *talked  `json:"load,omitempty"`
	Sessions *opened  `json:"sessions,omitempty"`
	Crash    *crashed `json:"crash,omitempty"`
	Soak     *soaked  `json:"soak,omitempty"`
	Machine  activity `json:"machine"`
}

// failures are the broken promises of a run: messages that were lost, doubled or not answered.
func (r report) failures() []string {
	var out []string
	count := func(n int, what string) {
		if n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, what))
		}
	}
	if r.Latency != nil {
		count(r.Latency.Missing, "replies missing in one chat")
		count(r.Latency.Duplicated, "replies doubled in one chat")
	}
	if r.Load != nil {
		count(r.Load.Missing, "replies missing under load")
		count(r.Load.Duplicated, "replies doubled under load")
	}
	if r.Sessions != nil {
		count(r.Sessions.Missing, "replies missing in the sessions phase")
	}
	if r.Crash != nil {
		count(r.Crash.total().Lost, "messages lost by kill -9")
		count(r.Crash.total().Duplicated, "replies doubled by kill -9")
	}
	if r.Soak != nil {
		count(r.Soak.Missing, "replies missing in the soak")
	}
	return out
}

// row is one line of the table.
type row struct{ what, figure, budget, verdict string }

// atMost and atLeast judge a figure.
func atMost(value, budget float64) string {
	if value <= budget {
		return "met"
	}
	return "missed"
}

func atLeast(value, budget float64) string { return atMost(-value, -budget) }

// rows are the lines of the table, phase by phase.
func (r report) rows() []row {
	var rows []row
	add := func(what, figure, budget, verdict string) { rows = append(rows, row{what, figure, budget, verdict}) }
	if s := r.Start; s != nil {
		add("start to first poll, empty home", fmt.Sprintf("%.0f ms", s.Cold), "", "")
		if s.Warm.N > 0 {
			add(fmt.Sprintf("start to first poll, %d warm starts", s.Warm.N), fmt.Sprintf("%.0f ms (%.0f to %.0f)", s.Warm.Median, s.Warm.Min, s.Warm.Max),
				fmt.Sprintf("%.0f ms", budgetStart), atMost(s.Warm.Median, budgetStart))
		}
	}
	for _, x := range []struct {
		where string
		idled *idled
	}{{"idle, Telegram and the browser chat: ", r.Idle}, {"idle, all five platforms and the browser chat: ", r.Five}} {
		if s := x.idled; s != nil {
			add(x.where+"memory (PSS)", fmt.Sprintf("%.1f MiB", s.PSS), fmt.Sprintf("%.0f MiB", budgetPSS), atMost(s.PSS, budgetPSS))
			add(x.where+"anonymous part", fmt.Sprintf("%.1f MiB", s.Anon), fmt.Sprintf("%.0f MiB", budgetAnon), atMost(s.Anon, budgetAnon))
			add(x.where+"CPU", fmt.Sprintf("%.2f %%", s.CPU), "", "")
		}
	}
	if s := r.Latency; s != nil {
		where := fmt.Sprintf("one chat, %d messages: ", s.Latency.N+s.Missing)
		add(where+"added to a reply, p50", fmt.Sprintf("%.1f ms", s.Latency.Median), fmt.Sprintf("%.0f ms", budgetP50), atMost(s.Latency.Median, budgetP50))
		add(where+"p99", fmt.Sprintf("%.1f ms", s.Latency.P99), fmt.Sprintf("%.0f ms", budgetP99), atMost(s.Latency.P99, budgetP99))
		add(where+"CPU a turn", fmt.Sprintf("%.2f ms", s.CPU), fmt.Sprintf("%.1f ms", budgetAlone), atMost(s.CPU, budgetAlone))
	}
	if s := r.Load; s != nil {
		where := fmt.Sprintf("busy chats, %d messages: ", s.Latency.N+s.Missing)
		add(where+"turns", fmt.Sprintf("%.0f/s", s.PerSecond), fmt.Sprintf("%.0f/s", budgetRate), atLeast(s.PerSecond, budgetRate))
		add(where+"p50, p99", fmt.Sprintf("%.0f ms, %.0f ms", s.Latency.Median, s.Latency.P99), "", "")
		add(where+"CPU a turn", fmt.Sprintf("%.2f ms", s.CPU), fmt.Sprintf("%.1f ms", budgetTurnCPU), atMost(s.CPU, budgetTurnCPU))
		add(where+"CPU a turn of the benchmark itself", fmt.Sprintf("%.2f ms", s.BenchCPU), "", "")
		add(where+"memory (PSS)", fmt.Sprintf("%.1f MiB", s.PSS), "", "")
	}
	if s := r.Sessions; s != nil {
		add(fmt.Sprintf("one idle session, of %d", s.N), fmt.Sprintf("%.1f KiB", s.KiB), fmt.Sprintf("%.0f KiB", budgetSession), atMost(s.KiB, budgetSession))
	}
	if s := r.Crash; s != nil {
		t := s.total()
		where := fmt.Sprintf("%d × kill -9, %d messages: ", len(s.Rounds), t.Sent)
		add(where+"lost, duplicated", fmt.Sprintf("%d, %d", t.Lost, t.Duplicated), "0, 0", atMost(float64(t.Lost+t.Duplicated), 0))
		add(where+"restart to the last reply, longest", fmt.Sprintf("%.1f s", t.Recovery), "", "")
	}
	if s := r.Soak; s != nil && len(s.Samples) > 0 {
		first, last, most := s.first(), s.last(), s.most()
		goroutines, pss := s.growth()
		where := fmt.Sprintf("soak, %d turns: ", s.Turns)
		add(where+"goroutines, first, last, most", fmt.Sprintf("%d, %d, %d", first.Goroutines, last.Goroutines, most.Goroutines), "flat",
			atMost(goroutines, flat))
		add(where+"memory (PSS), first, last, most", fmt.Sprintf("%.1f, %.1f, %.1f MiB", first.PSS, last.PSS, most.PSS), "flat", atMost(pss, flat))
	}
	return rows
}

// markdown is the report as a table for people.
func (r report) markdown() string {
	var b strings.Builder
	b.WriteString("| what | measured | budget | |\n|---|---|---|---|\n")
	for _, x := range r.rows() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", x.what, x.figure, x.budget, x.verdict)
	}
	fmt.Fprintf(&b, "\n%s\n", r.Machine)
	return b.String()
}

// The marks of the table in a document.
const (
	beginMark = "<!-- bench -->"
	endMark   = "<!-- /bench -->"
)

// insert puts table between the marks of a document.
func insert(document, table string) (string, error) {
	head, rest, ok := strings.Cut(document, beginMark)
	_, tail, ok2 := strings.Cut(rest, endMark)
	if !ok || !ok2 {
		return "", fmt.Errorf("the document has no %s and %s, in this order", beginMark, endMark)
	}
	return head + beginMark + "\n\n" + strings.TrimSpace(table) + "\n\n" + endMark + tail, nil
}
