package demo

import (
	"bytes"
	"encoding/json"
	"path"
	"strconv"
	"strings"
)

// maxShown is how much of a result is shown, in bytes.
const maxShown = 8000

// describe says in Markdown what a call brought. Failures are explained elsewhere.
func describe(o outcome) string {
	var args struct {
		Path    string `json:"path"`
		Command string `json:"command"`
		Content string `json:"content"`
	}
	_ = json.Unmarshal([]byte(o.call.Arguments), &args) // other tools have other arguments
	switch o.call.Name {
	case "write_file":
		return "Wrote `" + args.Path + "` (" + plural(len([]rune(args.Content)), "character", "characters") + ")."
	case "read_file":
		return describeFile(args.Path, o.text)
	case "patch":
		if diff := member(o.text, "diff"); diff != "" {
			return "Changed `" + args.Path + "`:\n\n" + block("diff", diff)
		}
		return "Changed `" + args.Path + "`."
	case "terminal":
		return describeCommand(args.Command, o.text)
	case "todo":
		return describeTodo(o.text)
	case "search_files":
		return describeSearch(o.text)
	case "session_search":
		return describeConversations(o)
	case "clarify":
		for _, key := range []string{"user_response", "answer", "response", "choice"} {
			if a := member(o.text, key); a != "" {
				return "You answered: " + a
			}
		}
		return "You answered: " + clip(o.text, maxShown)
	case "execute_code":
		return describeCommand("", o.text)
	case "cronjob":
		return describeJobs(o)
	}
	return describeAny(o)
}

// describeJobs says what the job tool has done, and lists the jobs when there are some in its answer.
func describeJobs(o outcome) string {
	var r struct {
		Message string `json:"message"`
		Notice  string `json:"notice"`
		Jobs    []struct {
			ID    flexible `json:"job_id"`
			Name  string   `json:"name"`
			When  string   `json:"schedule_in_words"`
			State string   `json:"state"`
		} `json:"jobs"`
	}
	if json.Unmarshal([]byte(o.text), &r) != nil || r.Message == "" {
		return describeAny(o)
	}
	text := strings.TrimSpace(r.Message + " " + r.Notice)
	for _, j := range r.Jobs {
		text += "\n- " + j.Name + " (`" + string(j.ID) + "`): " + j.When
		if j.State != "scheduled" && j.State != "" {
			text += ", " + j.State
		}
	}
	return text
}

func describeFile(name, text string) string {
	content := text
	if c := member(text, "content"); c != "" {
		content = c
	} else if member(text, "status") == "unchanged" {
		return "`" + name + "` has not changed since I last read it."
	} else if strings.HasPrefix(strings.TrimSpace(text), "{") && json.Valid([]byte(text)) {
		content = pretty(text)
	}
	content = withoutNumbers(content)
	if strings.TrimSpace(content) == "" {
		return "`" + name + "` is empty."
	}
	return "`" + name + "`:\n\n" + block(language(name), content)
}

// withoutNumbers takes "12|" off each line where all have it.
func withoutNumbers(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	out := make([]string, 0, len(lines))
	for i, l := range lines {
		number, rest, ok := strings.Cut(l, "|")
		if _, err := strconv.Atoi(strings.TrimSpace(number)); !ok || err != nil {
			if i == 0 {
				return s
			}
			rest = l // a hint behind the file's lines
		}
		out = append(out, rest)
	}
	return strings.Join(out, "\n")
}

func language(name string) string {
	switch ext := strings.TrimPrefix(path.Ext(name), "."); ext {
	case "go", "py", "js", "ts", "json", "yaml", "toml", "html", "css", "sql", "sh", "md", "rs", "c", "xml":
		return ext
	case "yml":
		return "yaml"
	}
	return ""
}

func describeCommand(command, text string) string {
	var r struct {
		Output    *string         `json:"output"`
		Stdout    string          `json:"stdout"`
		Stderr    string          `json:"stderr"`
		ExitCode  *int            `json:"exit_code"`
		SessionID flexible        `json:"session_id"`
		Status    string          `json:"status"`
		Result    json.RawMessage `json:"result"`
	}
	head := ""
	if command != "" {
		head = "`" + strings.ReplaceAll(clip(strings.Join(strings.Fields(command), " "), 200), "`", "'") + "`"
	}
	if json.Unmarshal([]byte(text), &r) != nil {
		return strings.TrimSpace(head + "\n\n" + block("", text))
	}
	output := r.Stdout
	if r.Output != nil {
		output = *r.Output
	}
	if r.Stderr != "" {
		output = strings.TrimRight(output, "\n") + "\n" + r.Stderr
	}
	if output == "" && len(r.Result) > 0 {
		output = scalar(r.Result)
	}
	var parts []string
	if head != "" {
		parts = append(parts, head)
	}
	if strings.TrimSpace(output) == "" {
		parts = append(parts, "No output.")
	} else {
		parts = append(parts, block("", output))
	}
	switch {
	case r.ExitCode != nil:
		parts = append(parts, "Exit code "+strconv.Itoa(*r.ExitCode)+".")
	case r.SessionID != "":
		parts = append(parts, "It runs in the background as process `"+string(r.SessionID)+"`.")
	case r.Status != "":
		parts = append(parts, "Status: "+r.Status+".")
	}
	return strings.Join(parts, "\n\n")
}

func describeTodo(text string) string {
	items := todoIn(text)
	if items == nil {
		if strings.Contains(text, `"todos"`) {
			return "Your todo list is empty."
		}
		return block("", text)
	}
	if len(items) == 0 {
		return "Your todo list is empty."
	}
	marks := map[string]string{"completed": "[x]", "in_progress": "[>]", "cancelled": "[~]"}
	lines := []string{"Your todo list:", ""}
	for _, t := range items {
		mark := marks[t.Status]
		if mark == "" {
			mark = "[ ]"
		}
		lines = append(lines, "- "+mark+" "+strings.Join(strings.Fields(t.Content), " "))
	}
	return strings.Join(lines, "\n")
}

func describeSearch(text string) string {
	var r struct {
		Matches []struct {
			Path    string   `json:"path"`
			File    string   `json:"file"`
			Line    flexible `json:"line"`
			Number  flexible `json:"line_number"`
			Content string   `json:"content"`
			Text    string   `json:"text"`
		} `json:"matches"`
		Files []string `json:"files"`
		Total *int     `json:"total_count"`
	}
	// The tool may add a hint behind its JSON.
	body := strings.TrimSpace(text)
	if end := balanced(body); strings.HasPrefix(body, "{") {
		body = body[:end]
	}
	named := strings.Contains(body, `"matches"`) || strings.Contains(body, `"files"`)
	if json.Unmarshal([]byte(body), &r) != nil || len(r.Matches) == 0 && len(r.Files) == 0 && r.Total == nil && !named {
		if strings.TrimSpace(text) == "" {
			return "Nothing was found."
		}
		return "Found:\n\n" + block("", pretty(text))
	}
	if len(r.Matches) == 0 && len(r.Files) == 0 {
		return "Nothing was found."
	}
	var lines []string
	for _, m := range r.Matches {
		line := m.Path + m.File
		if n := string(m.Line) + string(m.Number); n != "" {
			line += ":" + n
		}
		lines = append(lines, line+": "+strings.TrimRight(m.Content+m.Text, "\r\n"))
	}
	lines = append(lines, r.Files...)
	return "Found " + plural(len(lines), "match", "matches") + ":\n\n" + block("", strings.Join(lines, "\n"))
}

// describeConversations shows what a search of old conversations found, newest first as the tool has it.
func describeConversations(o outcome) string {
	type conversation struct {
		Title   string   `json:"title"`
		Source  string   `json:"source"`
		Started string   `json:"started"`
		Updated string   `json:"last_active"`
		Current bool     `json:"current"`
		Count   flexible `json:"messages"`
		Snippet string   `json:"snippet"`
	}
	var r struct {
		Mode     string         `json:"mode"`
		Query    string         `json:"query"`
		Results  []conversation `json:"results"`
		Sessions []conversation `json:"sessions"`
		More     int            `json:"more_sessions"`
	}
	body := strings.TrimSpace(o.text)
	if strings.HasPrefix(body, "{") {
		body = body[:balanced(body)] // the tool may add a hint behind its JSON
	}
	if json.Unmarshal([]byte(body), &r) != nil || (r.Results == nil && r.Sessions == nil) {
		return describeAny(o)
	}
	list, head := r.Results, "Found in "+plural(len(r.Results), "conversation", "conversations")+":"
	if r.Results == nil {
		list, head = r.Sessions, "Your newest conversations:"
	}
	if len(list) == 0 {
		if r.Query != "" {
			return "No conversation says “" + r.Query + "”."
		}
		return "There is no conversation yet."
	}
	lines := []string{head, ""}
	for _, c := range list {
		at := c.Updated
		if at == "" {
			at = c.Started
		}
		line := "- " + at
		if c.Source != "" {
			line += ", " + c.Source
		}
		if c.Current {
			line += ", here"
		}
		if title := strings.Join(strings.Fields(c.Title), " "); title != "" {
			line += ", “" + title + "”"
		}
		if words := strings.Join(strings.Fields(c.Snippet), " "); words != "" {
			line += ": " + words
		} else if c.Count != "" {
			line += ": " + string(c.Count) + " messages"
		}
		lines = append(lines, line)
	}
	if r.More > 0 {
		lines = append(lines, "", "And "+plural(r.More, "conversation", "conversations")+" more.")
	}
	return strings.Join(lines, "\n")
}

// describeAny shows a result of a tool whose shape is not known here: its message and the rest of it.
func describeAny(o outcome) string {
	text := strings.TrimSpace(o.text)
	head := "`" + o.call.Name + "` answered"
	if text == "" {
		return head + " nothing."
	}
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		if !strings.Contains(text, "\n") && len(text) < 300 {
			return head + ": " + text
		}
		return head + ":\n\n" + block("", text)
	}
	if m := member(text, "message"); m != "" && !strings.ContainsAny(strings.TrimPrefix(text, "{"), "{[") {
		return head + ": " + m
	}
	return head + ":\n\n" + block("json", pretty(text))
}

// member returns a string member of a JSON object, empty when there is none.
func member(text, key string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) != nil {
		return ""
	}
	var s string
	if json.Unmarshal(object[key], &s) != nil {
		return ""
	}
	return s
}

func pretty(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(strings.TrimSpace(text)), "", "  ") != nil {
		return text
	}
	return b.String()
}

// block puts a text into a fence that it can't close.
func block(language, text string) string {
	text = strings.TrimRight(text, "\n")
	cut := ""
	if len(text) > maxShown {
		cut = "\n\n(" + strconv.Itoa(len(text)-maxShown) + " bytes more are not shown.)"
		text = strings.ToValidUTF8(text[:maxShown], "")
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + text + "\n" + fence + cut
}
