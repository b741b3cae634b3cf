package gateway

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"herald/gateway/admin"
	"herald/sessions"
	"herald/tools"
)

// The bounds of logs/tool_calls.log (spec 1.11).
const (
	toolLogBytes = 5 << 20
	toolLogArgs  = 2000 // characters of a call's arguments in its line
)

// toolLog writes a line for each tool call of the chats whose progress goes to the log. The file is opened with the
// first one.
type toolLog struct {
	path  string
	clean func(string) string
	log   zerolog.Logger

	mu     sync.Mutex
	file   *admin.Rotating
	failed bool
}

// toolLine is one line of the file.
type toolLine struct {
	Time    time.Time `json:"time"`
	Session string    `json:"session"`
	Chat    string    `json:"chat"`
	Tool    string    `json:"tool"`
	Args    string    `json:"args"`
	Exit    string    `json:"exit"`
	TookMS  int64     `json:"took_ms"`
}

// write adds a finished call. A file that can't be written is told of once and never stops a call.
func (l *toolLog) write(s sessions.ID, e tools.Event) {
	args := []rune(string(e.Call.Args))
	if len(args) > toolLogArgs {
		args = append(args[:toolLogArgs:toolLogArgs], '…')
	}
	c := e.Call.Caller
	line, err := json.Marshal(toolLine{Time: e.At, Session: string(s), Chat: c.Platform + ":" + c.Chat, Tool: e.Call.Name, Args: l.clean(string(args)),
		Exit: e.Result.Exit, TookMS: e.Result.Took.Milliseconds()})
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		if l.file, err = admin.OpenRotating(l.path, toolLogBytes); err != nil {
			l.file = nil
			if !l.failed {
				l.log.Warn().Err(err).Str("file", l.path).Msg("tool calls can't be logged")
			}
			l.failed = true
			return
		}
	}
	_, _ = l.file.Write(append(line, '\n'))
}

func (l *toolLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}
