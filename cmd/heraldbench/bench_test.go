package main

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestQuantile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, row := range []struct {
		name   string
		sorted []time.Duration
		q      float64
		want   time.Duration
	}{
		{"nothing", nil, 0.5, 0},
		{"one", []time.Duration{7}, 0.99, 7},
		{"smallest", hundred, 0, 1},
		{"median", hundred, 0.5, 51},
		{"p99", hundred, 0.99, 100},
		{"largest", hundred, 1, 100},
		{"median of three", []time.Duration{1, 5, 9}, 0.5, 5},
	} {
		require.Equal(t, row.want, quantile(row.sorted, row.q), row.name)
	}
}

// At least the share q of the values is at most the quantile, and it is one of them.
func TestQuantile_Share(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Map(rapid.Int64Range(0, 50), func(n int64) time.Duration { return time.Duration(n) }), 1, 60).Draw(t, "values")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		slices.Sort(values)
		v := quantile(values, q)
		below := 0
		for _, x := range values {
			if x <= v {
				below++
			}
		}
		if !slices.Contains(values, v) || float64(below) < q*float64(len(values)) {
			t.Fatalf("quantile %v of %v is %v", q, values, v)
		}
	})
}

func TestSpreadOf(t *testing.T) {
	ms := time.Millisecond
	require.Equal(t, spread{N: 4, Min: 1, Median: 3, P99: 4.5, Max: 4.5}, spreadOf([]time.Duration{3 * ms, 4500 * time.Microsecond, ms,
		2 * ms}))
	require.Equal(t, spread{}, spreadOf(nil))
	require.Zero(t, ratio(3, 0))
}

func TestParseStat(t *testing.T) {
	st, err := parseStat([]byte("4321 (a (very) odd) name) S 1 4300 4300 0 -1 4194560 900 0 0 0 120 35 9 9 20 0 8 0 100 1 2\n"))
	require.NoError(t, err)
	require.Equal(t, stat{group: 4300, cpu: 1550 * time.Millisecond}, st, "reaped children's 9 and 9 are not in it")
	for _, bad := range []string{"", "1 name S", "1 (x) S 1 2 3", "1 (x) S 1 2 3 4 5 6 7 8 9 10 u 12 13"} {
		_, err := parseStat([]byte(bad))
		require.Error(t, err, "%q", bad)
	}
}

func TestParseRollup(t *testing.T) {
	pss, anon, err := parseRollup([]byte("00400000-7fff ---p 00000000 00:00 0 [rollup]\nRss:  40960 kB\nPss:  20480 kB\nPss_Dirty:  9 kB\nPss_Anon:  5120 kB\nPss_File:  1 kB\n"))
	require.NoError(t, err)
	require.Equal(t, [2]float64{20, 5}, [2]float64{pss, anon})
	for _, bad := range []string{"", "Rss: 1 kB\n", "Pss: x kB\n", "Pss: 1 MB\n", "Pss: 1\n"} {
		_, _, err := parseRollup([]byte(bad))
		require.Error(t, err, "%q", bad)
	}
}

func TestMachine(t *testing.T) {
	before, err := parseMachine([]byte("cpu  100 10 50 800 20 5 5 10 0 0\ncpu0 1 1 1 1\n"))
	require.NoError(t, err)
	require.Equal(t, machine{busy: 1700 * time.Millisecond, stolen: 100 * time.Millisecond, all: 10 * time.Second}, before)
	after := machine{busy: before.busy + 6*time.Second, stolen: before.stolen + time.Second, all: before.all + 10*time.Second}
	a := judge(1, 3, before, after, 4*time.Second, 5*time.Second)
	require.Equal(t, activity{LoadBefore: 1, LoadAfter: 3, Ours: 40, Others: 20, Stolen: 10, Seconds: 5}, a)
	require.Contains(t, a.String(), "The machine was busy")
	a.Others, a.Stolen = 2, 0
	require.NotContains(t, a.String(), "The machine was busy")
	for _, bad := range []string{"", "cpu 1 2", "intr 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 5 6 7 x"} {
		_, err := parseMachine([]byte(bad))
		require.Error(t, err, "%q", bad)
	}
	load, err := parseLoad([]byte("1.25 2 3 1/100 9\n"))
	require.NoError(t, err)
	require.Equal(t, 1.25, load)
	_, err = parseLoad([]byte("much"))
	require.Error(t, err)
}

func TestMetric(t *testing.T) {
	text := "# HELP go_goroutines Number\ngo_goroutines_total 3\ngo_goroutines 41\nother 1e+06\n"
	n, err := metric(text, "go_goroutines")
	require.NoError(t, err)
	require.Equal(t, 41, n)
	n, err = metric(text, "other")
	require.NoError(t, err)
	require.Equal(t, 1_000_000, n)
	_, err = metric(text, "go")
	require.Error(t, err)
}

func TestTokensOf(t *testing.T) {
	require.Equal(t, []string{"tok-10000001", "tok-10000002"}, tokensOf("tok-10000002, tok-10000001 and tok-10000002; tok-1"))
}

func TestKillMoments(t *testing.T) {
	require.Equal(t, []time.Duration{1200 * time.Millisecond}, killMoments(1))
	require.Equal(t, []time.Duration{1200 * time.Millisecond, 50 * time.Millisecond, 1025 * time.Millisecond, 2 * time.Second}, killMoments(4))
}

func TestOwnEnv(t *testing.T) {
	require.Equal(t, []string{"PATH=/bin", "HOME=/root"},
		ownEnv([]string{"PATH=/bin", "HERALD_MODEL=x", "ANTHROPIC_API_KEY=k", "SLACK_BOT_TOKEN=t", "OPENAI_BASE_URL=u", "HOME=/root"}))
}

func whole() report {
	return report{
		Start:    &started{Cold: 200, Warm: spread{N: 10, Min: 30, Median: 41, Max: 99}},
		Idle:     &idled{PSS: 23.71, Anon: 7.3},
		Latency:  &talked{Latency: spread{N: 200, Median: 1.9, P99: 6.1}, CPU: 1.4},
		Load:     &talked{Latency: spread{N: 1000, Median: 30, P99: 90}, PerSecond: 2499, CPU: 0.49, BenchCPU: 0.5, PSS: 36.7},
		Sessions: &opened{N: 1000, KiB: 0.6},
		Crash:    &crashed{Rounds: []crash{{Sent: 200, Recovery: 1}, {Sent: 200, Recovery: 0.9}}},
		Soak:     &soaked{Turns: 20000, Samples: []sample{{2000, 100, 30}, {4000, 120, 35}, {6000, 105, 33}}},
		Machine:  activity{LoadBefore: 0.1, LoadAfter: 1.5, Others: 2, Seconds: 60},
	}
}

func TestReport_Rows(t *testing.T) {
	verdicts := map[string]string{}
	for _, row := range whole().rows() {
		verdicts[row.what] = row.verdict
		require.Equal(t, row.budget == "", row.verdict == "", row.what)
	}
	require.Equal(t, "missed", verdicts["start to first poll, 10 warm starts"])
	require.Equal(t, "met", verdicts["idle, Telegram and the browser chat: memory (PSS)"])
	require.Equal(t, "met", verdicts["one chat, 200 messages: added to a reply, p50"])
	require.Equal(t, "missed", verdicts["one chat, 200 messages: p99"])
	require.Equal(t, "missed", verdicts["busy chats, 1000 messages: turns"])
	require.Equal(t, "met", verdicts["busy chats, 1000 messages: CPU a turn"])
	require.Equal(t, "met", verdicts["2 × kill -9, 400 messages: lost, duplicated"])
	require.Equal(t, "met", verdicts["soak, 20000 turns: goroutines, first, last, most"])
	require.Equal(t, "met", verdicts["soak, 20000 turns: memory (PSS), first, last, most"])
	require.Empty(t, report{}.rows())
}

func TestSoaked_Growth(t *testing.T) {
	g, p := soaked{Samples: []sample{{0, 90, 30}, {0, 110, 50}, {0, 7, 7}, {0, 100, 60}, {0, 110, 60}}}.growth()
	require.InDelta(t, 1.05, g, 1e-9)
	require.InDelta(t, 1.5, p, 1e-9)
	g, p = soaked{Samples: []sample{{0, 90, 30}}}.growth()
	require.Zero(t, g+p)
}

// Speed is no failure; a message that has no reply, or two, is.
func TestReport_Failures(t *testing.T) {
	r := whole()
	require.Empty(t, r.failures())
	require.Empty(t, report{}.failures())
	r.Latency.Missing, r.Load.Duplicated, r.Sessions.Missing, r.Soak.Missing = 1, 2, 3, 4
	r.Crash.Rounds[1].Lost, r.Crash.Rounds[0].Duplicated = 5, 6
	require.Equal(t, []string{"1 replies missing in one chat", "2 replies doubled under load", "3 replies missing in the sessions phase",
		"5 messages lost by kill -9", "6 replies doubled by kill -9", "4 replies missing in the soak"}, r.failures())
}

func TestInsert(t *testing.T) {
	got, err := insert("a\n<!-- bench -->\nold\n<!-- /bench -->\nb\n", "new\n")
	require.NoError(t, err)
	require.Equal(t, "a\n<!-- bench -->\n\nnew\n\n<!-- /bench -->\nb\n", got)
	again, err := insert(got, "new\n")
	require.NoError(t, err)
	require.Equal(t, got, again)
	for _, bad := range []string{"", "<!-- bench -->", "<!-- /bench --><!-- bench -->"} {
		_, err := insert(bad, "new")
		require.Error(t, err, "%q", bad)
	}
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"-phases", "start,crash", "-starts", "0", "-soak", "100"})
	require.NoError(t, err)
	require.Equal(t, []string{"start", "crash"}, o.phases)
	for _, bad := range [][]string{{"-phases", "stat"}, {"-crashes", "0"}, {"-soak", "10"}, {"-nothing"}} {
		_, err := parse(bad)
		require.Error(t, err, "%v", bad)
	}
}
