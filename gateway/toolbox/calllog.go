package toolbox

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"herald/gateway/admin"
	"herald/sessions"
	"herald/tools"
)

// The bounds of the file of tool calls.
const (
	callLogBytes = 5 << 20
	callLogArgs  = 2000 // characters of a call's arguments in its line
)

// CallLog writes a line for each tool call of the chats whose progress goes to the log. It is safe for concurrent use.
type CallLog struct {
	path  string
	clean func(string) string
	log   zerolog.Logger

	mu     sync.Mutex
	file   *admin.Rotating
	failed bool
}

// NewCallLog returns a log to a file, which is opened with the first line; clean takes secrets out of arguments.
func NewCallLog(path string, clean func(string) string, log zerolog.Logger) *CallLog {
	return &CallLog{path: path, clean: clean, log: log}
}

// callLine is one line of the file.
type callLine struct {
	Time    time.Time `json:"time"`
	Session string    `json:"session"`
	Chat    string    `json:"chat"`
	Tool    string    `json:"tool"`
	Args    string    `json:"args"`
	Exit    string    `json:"exit"`
	TookMS  int64     `json:"took_ms"`
}

// Write adds a finished call. That the file can't be opened is logged once and never stops a call.
func (l *CallLog) Write(s sessions.ID, e tools.Event) {
	args := []rune(string(e.Call.Args))
	if len(args) > callLogArgs {
		args = append(args[:callLogArgs:callLogArgs], '…')
	}
	c := e.Call.Caller
	line, err := json.Marshal(callLine{Time: e.At, Session: string(s), Chat: c.Platform + ":" + c.Chat, Tool: e.Call.Name,
		Args: l.clean(string(args)), Exit: e.Result.Exit, TookMS: e.Result.Took.Milliseconds()})
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		if l.file, err = admin.OpenRotating(l.path, callLogBytes); err != nil {
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

// Close closes the file; a later line opens it again.
func (l *CallLog) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}
