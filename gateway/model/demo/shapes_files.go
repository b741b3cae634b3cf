package demo

import (
	"encoding/json"
	"strings"
)

// The parts of patterns. A file is quoted, or a word with a dot or a slash in it, or "it".
const (
	reFile  = "(\"[^\"\\n]+\"|'[^'\\n]+'|`[^`\\n]+`|[^\\s\"'`]*[./][^\\s\"'`]*|it|that file|the file)"
	reWord  = "(\"[^\"\\n]+\"|'[^'\\n]+'|`[^`\\n]+`|[^\\s\"'`]+)"
	reThe   = `(?:the |a |an |my |our |this |that )?`
	reNamed = `(?:new |text |file |called |named )*`
)

// directShapes call any tool by its name.
func directShapes() []shape {
	return []shape{
		{`(?:use|call|invoke)\s+(?:the\s+)?(?:tool\s+)?` + "`?" + `([a-z][a-z0-9_.-]*)` + "`?" + `(?:\s+tool)?(?:(?:\s+with|\s+on)?(?:\s+arguments?)?[\s:]+(.+))?`,
			func(e *env, m []string) *step {
				name := m[1]
				def, ok := e.tools[name]
				if !ok && !e.offered(strings.ToLower(name)) && !strings.Contains(name, "_") && !known[strings.ToLower(name)] {
					return nil
				}
				if !ok {
					name = strings.ToLower(name)
					def = e.tools[name]
				}
				rest := strings.TrimSpace(m[2])
				if after, ok := strings.CutPrefix(rest, "to "); ok {
					if s := e.match(polite(after)); s != nil && s.tool == name {
						return s
					}
					rest = after
				}
				args, problem := direct(rest, schemaOf(def.Parameters))
				if problem != "" {
					return say("I can't call `" + name + "` like that: " + problem)
				}
				s := &step{tool: name, whole: true}
				s.calls = func(so []outcome) []planned {
					if len(so) > 0 {
						return nil
					}
					return []planned{{tool: name, args: args, exact: true}}
				}
				return s
			}},
	}
}

// known are tools of Herald whose names could be ordinary words.
var known = map[string]bool{
	"terminal": true, "process": true, "patch": true, "todo": true, "memory": true, "clarify": true, "cronjob": true,
}

func fileShapes() []shape {
	write := func(e *env, path, content string) *step {
		path = e.path(path)
		if path == "" {
			return say("Which file? Tell me its name, as in “write hello to notes.txt”.")
		}
		s := once("write_file", field{"path", path}, field{"content", content})
		s.file = path
		return s
	}
	read := func(e *env, names []string, extra ...field) *step {
		var paths []string
		for _, n := range names {
			if p := e.path(n); p != "" {
				paths = append(paths, p)
			}
		}
		if len(paths) == 0 {
			return say("Which file? Tell me its name, as in “show notes.txt”.")
		}
		s := &step{tool: "read_file", file: paths[len(paths)-1]}
		s.calls = func(so []outcome) []planned {
			if len(so) > 0 {
				return nil
			}
			var out []planned
			for _, p := range paths {
				out = append(out, planned{tool: "read_file", args: append(fields{{"path", p}}, extra...)})
			}
			return out
		}
		return s
	}
	patch := func(e *env, path, old, with string, all bool) *step {
		path = e.path(path)
		if path == "" {
			return say("In which file? Say it as in “change hello to bye in notes.txt”.")
		}
		args := []field{{"mode", "replace"}, {"path", path}, {"old_string", unquote(old)}, {"new_string", unquote(with)}}
		if all {
			args = append(args, field{"replace_all", true})
		}
		s := once("patch", args...)
		s.file = path
		return s
	}
	search := func(pattern string, extra ...field) *step {
		return once("search_files", append([]field{{"pattern", unquote(pattern)}}, extra...)...)
	}
	everywhere := func(s string) (string, bool) {
		for _, w := range []string{"all ", "every "} {
			if len(s) > len(w) && strings.EqualFold(s[:len(w)], w) {
				return s[len(w):], true
			}
		}
		return s, false
	}
	return []shape{
		// send into the chat
		{`(?:send|give|upload|attach|post)\s+(?:me\s+)?` + reThe + `(?:file\s+)?` + reFile + `(?:\s+(?:back|to me|back to me|here|as a file|into (?:the|this) chat))?`,
			func(e *env, m []string) *step { return e.sendFile(m[1]) }},
		// append
		{`(?:append|add)\s+(.+?)\s+(?:to the end of|to)\s+` + reThe + `(?:file )?` + reFile, func(e *env, m []string) *step {
			path := e.path(m[2])
			if path == "" {
				return nil
			}
			s := once("terminal", field{"command", "printf '%s\\n' " + shellQuote(unquote(m[1])) + " >> " + shellQuote(path)})
			s.file = path
			return s
		}},
		// write
		{`(?:create|make|write|add|save)\s+` + reThe + `(?:new |text |empty )*file\s+(?:called |named )?` + reFile + `\s*(?:,?\s*(?:with|containing|that contains|that says|which says|saying)\s*:?|:)\s*(?:the )?(?:(?:text|content|contents|words?)\b:?\s*)?(.+)`,
			func(e *env, m []string) *step { s := write(e, m[1], unquote(m[2])); s.whole = fence(m[2]); return s }},
		{`(?:create|make|touch)\s+` + reThe + `(?:new |text |empty )*file\s+(?:called |named )?` + reFile, func(e *env, m []string) *step { return write(e, m[1], "") }},
		{`(?:write|save|put)\s+(?:in)?to\s+` + reThe + reNamed + reFile + `\s*:\s*(.+)`, func(e *env, m []string) *step {
			s := write(e, m[1], unquote(m[2]))
			s.whole = true
			return s
		}},
		{`(?:write|save|put)\s+(?:this|the following)\s+(?:in)?to\s+` + reThe + reNamed + reFile + `\s*:?\s+(.+)`, func(e *env, m []string) *step {
			s := write(e, m[1], unquote(m[2]))
			s.whole = true
			return s
		}},
		{`(?:write|save|put|store)\s+(?:the (?:text|words?|line) )?(.+?)\s+(?:to|into|in)\s+` + reThe + reNamed + reFile, func(e *env, m []string) *step { return write(e, m[2], unquote(m[1])) }},
		// change
		{`(?:change|replace|swap)\s+(.+?)\s+(?:to|with|by|into)\s+(.+?)\s+(everywhere\s+)?in\s+` + reThe + `(?:file )?` + reFile + `(\s+everywhere)?`, func(e *env, m []string) *step {
			old, all := everywhere(m[1])
			return patch(e, m[4], old, m[2], all || m[3] != "" || m[5] != "")
		}},
		{`in\s+` + reThe + `(?:file )?` + reFile + `,?\s+(?:change|replace|swap)\s+(.+?)\s+(?:to|with|by|into)\s+(.+)`, func(e *env, m []string) *step {
			old, all := everywhere(m[2])
			return patch(e, m[1], old, m[3], all)
		}},
		{`(?:delete|remove)\s+(?:the (?:text|words?|line) )?(.+?)\s+from\s+` + reThe + `(?:file )?` + reFile, func(e *env, m []string) *step { return patch(e, m[2], m[1], "", false) }},
		// delete and list
		{`(?:delete|remove)\s+` + reThe + `file\s+` + reWord, func(e *env, m []string) *step {
			return once("terminal", field{"command", "rm -- " + shellQuote(e.path(m[1]))})
		}},
		{`(?:list|show)\s+(?:me )?` + reThe + `(?:all )?(?:the )?files(?:\s+(?:in|under)\s+` + reWord + `)?|what files (?:are (?:there|here)|do (?:you|we) have)|ls`, func(e *env, m []string) *step {
			if m[1] != "" {
				return search("*", field{"target", "files"}, field{"path", e.path(m[1])})
			}
			return search("*", field{"target", "files"})
		}},
		// search
		{`(?:search|look|grep)\s+(?:in |through |inside )?` + reThe + `(?:files?|code|project|folder|directory|source|sources|repo|repository|workspace)\s+for\s+(.+?)(?:\s+(?:in|under)\s+` + reFile + `)?`, func(e *env, m []string) *step {
			return searchIn(search, m[1], m[2], e)
		}},
		{`(?:search|look)\s+for\s+(.+?)\s+in\s+` + reThe + `(?:files?|code|project|folder|directory|source|sources|repo|repository|workspace)`, func(e *env, m []string) *step { return search(m[1]) }},
		{`(?:search|look)\s+for\s+(.+?)\s+in\s+` + reFile, func(e *env, m []string) *step { return searchIn(search, m[1], m[2], e) }},
		{`grep\s+(?:for\s+)?(.+?)(?:\s+in\s+` + reFile + `)?`, func(e *env, m []string) *step { return searchIn(search, m[1], m[2], e) }},
		{`find\s+(?:all )?(?:the )?files\s+(?:named|called|matching|like|with the name)\s+` + reWord, func(e *env, m []string) *step {
			return search(m[1], field{"target", "files"})
		}},
		{`(?:find|list)\s+(?:all )?(?:the )?(?:files )?(\S*\*\S*)(?:\s+files)?(?:\s+(?:in|under)\s+` + reFile + `)?`, func(e *env, m []string) *step {
			if m[2] != "" {
				return search(m[1], field{"target", "files"}, field{"path", e.path(m[2])})
			}
			return search(m[1], field{"target", "files"})
		}},
		{`find\s+(.+?)\s+in\s+(?:the |my |our )?(?:files|code|project|folder|directory|repo|repository|workspace)`, func(e *env, m []string) *step { return search(m[1]) }},
		// read
		{`(?:show|read|cat|print|display|view|see|open|get)\s+(?:me\s+)?lines?\s+(\d+)(?:\s*(?:to|-|–|until|through)\s*(\d+))?\s+(?:of|from|in)\s+` + reThe + `(?:file )?` + reFile, func(e *env, m []string) *step {
			from, to := atoi(m[1]), atoi(m[2])
			if to < from {
				to = from
			}
			return read(e, []string{m[3]}, field{"offset", max(from, 1)}, field{"limit", to - from + 1})
		}},
		{`(?:show|read|cat|print|display|view|see|open|get)\s+(?:me\s+)?(?:the\s+)?(?:contents?\s+of\s+)?(?:the\s+)?(?:files?\s+)?` + reFile + `(?:(?:\s*,\s*|\s+and\s+)(?:contents?\s+of\s+)?` + reFile + `)?(?:\s+again)?`, func(e *env, m []string) *step {
			if strings.Contains(m[1], "://") {
				return nil
			}
			if m[2] != "" {
				return read(e, m[1:3])
			}
			return read(e, m[1:2])
		}},
		{`(?:show|read|cat|print|display|open)\s+(?:me\s+)?(?:the\s+)?file\s+` + reWord, func(e *env, m []string) *step { return read(e, m[1:2]) }},
		{`cat\s+` + reWord, func(e *env, m []string) *step { return read(e, m[1:2]) }},
		{`what(?:'s| is| does)\s+(?:in\s+)?` + reThe + `(?:file\s+)?` + reFile + `(?:\s+(?:say|contain|hold))?`, func(e *env, m []string) *step {
			if imageName(m[1]) {
				return nil
			}
			return read(e, m[1:2])
		}},
	}
}

// searchIn narrows a search to a glob or a folder.
func searchIn(search func(string, ...field) *step, pattern, where string, e *env) *step {
	switch {
	case where == "":
		return search(pattern)
	case strings.ContainsAny(where, "*?"):
		return search(pattern, field{"file_glob", e.path(where)})
	}
	return search(pattern, field{"path", e.path(where)})
}

func fence(s string) bool { return strings.HasPrefix(strings.TrimSpace(s), "```") }

func atoi(s string) int {
	n := 0
	for _, r := range s {
		if n = n*10 + int(r-'0'); n > 1_000_000 {
			return 1_000_000
		}
	}
	return n
}

// shellQuote makes one word of the shell.
func shellQuote(s string) string {
	plain := s != ""
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/", r)) {
			plain = false
		}
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func codeShapes() []shape {
	shell := func(command string, extra ...field) *step {
		command = unquote(command)
		if strings.TrimSpace(command) == "" {
			return nil
		}
		return once("terminal", append([]field{{"command", command}}, extra...)...)
	}
	process := func(action string, id string, e *env, extra ...field) *step {
		id = unquote(strings.TrimSpace(id))
		if id == "" || strings.EqualFold(id, "it") {
			id = e.process
		}
		if id == "" {
			return say("Which process? “List the background processes” shows their ids.")
		}
		return once("process", append([]field{{"action", action}, {"session_id", id}}, extra...)...)
	}
	python := func(e *env, m []string) *step {
		code := fenced(strings.TrimSpace(m[1]))
		if code == "" {
			return nil
		}
		s := once("execute_code", field{"code", unquote(code)})
		s.whole = true
		return s
	}
	reProc := `(?:process|job|command|it)`
	return []shape{
		{`(?:run|execute)\s+(?:this|the following|some)?\s*(?:python|code|script)(?:\s+(?:code|script))?\s*:?\s*(.+)`, python},
		{`(?:python|python3)\s*:\s*(.+)`, python},
		{"(?:(?:run|execute)\\s*(?:this|it)?\\s*:?\\s*)?(```(?:python|py)\\n.+)", python},
		{`(?:run|start|execute)\s+(.+?)\s+in (?:the )?background`, func(e *env, m []string) *step { return shell(m[1], field{"background", true}) }},
		{`(?:run|start|execute)\s+(?:something )?in (?:the )?background\s*:\s*(.+)`, func(e *env, m []string) *step { return shell(m[1], field{"background", true}) }},
		{`(?:list|show)\s+(?:me )?(?:all )?(?:the |my )?(?:running |background )*(?:processes|background jobs|background commands)|what(?:'s| is) running`, func(e *env, m []string) *step {
			return once("process", field{"action", "list"})
		}},
		{`(?:show|get|read)\s+(?:me )?(?:the )?(?:output|log|logs)\s+of\s+(?:the )?(?:background )?` + reProc + `\s*(\S*)`, func(e *env, m []string) *step { return process("log", m[1], e) }},
		{`(?:poll|check on|check)\s+(?:the )?(?:background )?process\s*(\S*)`, func(e *env, m []string) *step { return process("poll", m[1], e) }},
		{`wait\s+for\s+(?:the )?(?:background )?process\s*(\S*)`, func(e *env, m []string) *step { return process("wait", m[1], e) }},
		{`(?:kill|stop|end|terminate)\s+(?:the )?(?:background )?process\s*(\S*)`, func(e *env, m []string) *step { return process("kill", m[1], e) }},
		{`(?:type|send|write|submit)\s+(.+?)\s+(?:to|into)\s+(?:the )?(?:background )?process\s*(\S*)`, func(e *env, m []string) *step {
			return process("submit", m[2], e, field{"data", unquote(m[1])})
		}},
		{`(?:run|execute)\s+(?:the\s+)?(?:shell\s+|bash\s+)?(?:command\s*:?\s+)?(.+)`, func(e *env, m []string) *step {
			if job, ok := strings.CutPrefix(strings.ToLower(m[1]), "job "); ok {
				return once("cronjob", field{"action", "run"}, field{"job_id", job})
			}
			s := shell(m[1])
			if s != nil && (fence(m[1]) || unquote(m[1]) != strings.TrimSpace(m[1])) {
				s.whole = true
			}
			return s
		}},
		{`\$\s+(.+)`, func(e *env, m []string) *step { return shell(m[1]) }},
		{`(?:in the )?(?:terminal|shell)\s*:\s*(.+)`, func(e *env, m []string) *step { return shell(m[1]) }},
		{`(?:what (?:folder|directory) (?:are we|am i|are you) in|where are (?:we|you)|pwd)`, func(e *env, m []string) *step { return shell("pwd") }},
	}
}

// jobID finds the id that a result of the job tool names.
func jobID(text string) string {
	var r struct {
		JobID flexible `json:"job_id"`
		Job   struct {
			ID flexible `json:"id"`
		} `json:"job"`
		Jobs []struct {
			ID    flexible `json:"id"`
			JobID flexible `json:"job_id"`
		} `json:"jobs"`
	}
	if json.Unmarshal([]byte(text), &r) != nil {
		return ""
	}
	switch {
	case r.JobID != "":
		return string(r.JobID)
	case r.Job.ID != "":
		return string(r.Job.ID)
	case len(r.Jobs) == 1 && r.Jobs[0].JobID != "":
		return string(r.Jobs[0].JobID)
	case len(r.Jobs) == 1:
		return string(r.Jobs[0].ID)
	}
	return ""
}
