package signaltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// The error codes of JSON-RPC and of the daemon.
const (
	codeParse         = -32700
	codeInvalid       = -32600
	codeUnknownMethod = -32601
	codeParams        = -32602
	codeUser          = -1
	codeUnexpected    = -2
	codeIO            = -3
	codeUntrusted     = -4
	codeRateLimit     = -5
)

type request struct {
	Version string          `json:"jsonrpc"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	ID      json.RawMessage `json:"id"`
}

// rpcError is the error of an answer. The daemon always writes data.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`
}

type answer struct {
	Version string    `json:"jsonrpc"`
	Result  any       `json:"result,omitempty"`
	Error   *rpcError `json:"error,omitempty"`
	ID      any       `json:"id"`
}

// peekMethod returns the method of a single request, "" when there is none.
func peekMethod(body []byte) string {
	var r struct {
		Method string `json:"method"`
	}
	_ = json.Unmarshal(body, &r)
	return r.Method
}

func (s *Server) rpc(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var out any
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && trimmed[0] == '[' {
		var batch []json.RawMessage
		if json.Unmarshal(body, &batch) != nil {
			out = parseError()
		} else {
			answers := make([]answer, 0, len(batch))
			for _, one := range batch {
				answers = append(answers, s.answer(r, one))
			}
			out = answers
		}
	} else {
		out = s.answer(r, body)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

func parseError() answer {
	return answer{Version: "2.0", Error: &rpcError{Code: codeParse, Message: "Parse error"}}
}

func (s *Server) answer(r *http.Request, body []byte) answer {
	var req request
	if json.Unmarshal(body, &req) != nil {
		return parseError()
	}
	out := answer{Version: "2.0"}
	if len(req.ID) > 0 {
		out.ID = req.ID
	}
	if req.Version != "2.0" || req.Method == "" {
		out.Error = &rpcError{Code: codeInvalid, Message: "invalid jsonrpc request"}
		return out
	}
	params := Params{}
	if len(req.Params) > 0 && json.Unmarshal(req.Params, &params) != nil {
		out.Error = &rpcError{Code: codeInvalid, Message: "invalid jsonrpc request"}
		return out
	}
	s.mu.Lock()
	s.calls = append(s.calls, Call{req.Method, params})
	s.mu.Unlock()
	result, err := s.run(r, req.Method, params)
	s.mu.Lock()
	delay, hook := s.delay, s.sentHook
	if req.Method == "send" {
		s.sentHook = nil
	} else {
		hook = nil
	}
	s.mu.Unlock()
	if hook != nil {
		hook()
	}
	if delay != nil {
		delay(req.Method)
	}
	if err != nil {
		var e *rpcError
		if !errors.As(err, &e) {
			e = &rpcError{Code: codeUnexpected, Message: err.Error()}
		}
		out.Error = e
		return out
	}
	out.Result = result
	return out
}

func (e *rpcError) Error() string { return e.Message }

func userError(text string) error { return &rpcError{Code: codeUser, Message: text} }

// Params are the parameters of a call: the command line's names in camelCase. One that takes several values is there
// under its singular name with one value or under its plural with an array.
type Params map[string]any

// Strings returns the values of a parameter that takes several.
func (p Params) Strings(name string) []string {
	var out []string
	for _, key := range []string{name, name + "s"} {
		switch v := p[key].(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, one := range v {
				if text, ok := one.(string); ok {
					out = append(out, text)
				}
			}
		}
	}
	return out
}

// String returns a parameter that takes one value.
func (p Params) String(name string) string {
	v, _ := p[name].(string)
	return v
}

// Int returns a number.
func (p Params) Int(name string) int64 {
	v, _ := p[name].(float64)
	return int64(v)
}

// Bool returns a switch.
func (p Params) Bool(name string) bool {
	v, _ := p[name].(bool)
	return v
}
