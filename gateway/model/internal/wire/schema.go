package wire

import (
	"bytes"
	"encoding/json"
	"sync"
)

// maxSchemas bounds how many schemas are remembered; a daemon sees some dozens.
const maxSchemas = 2048

// Schemas remembers which tool schemas are sound, so that a call does not parse all of them again.
type Schemas struct {
	mu    sync.RWMutex
	sound map[string][]byte
}

// Compact returns a tool's parameters as one JSON object without white space. Nil, null and what is not
// an object become a schema without properties: a provider refuses a request with anything else.
func (s *Schemas) Compact(raw json.RawMessage) []byte {
	s.mu.RLock()
	b, ok := s.sound[string(raw)]
	s.mu.RUnlock()
	if ok {
		return b
	}
	key := string(raw)
	b = []byte(`{"type":"object","properties":{}}`)
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil && object != nil {
		var out bytes.Buffer
		if _, typed := object["type"]; !typed {
			object["type"] = json.RawMessage(`"object"`)
			if j, err := json.Marshal(object); err == nil {
				raw = j
			}
		}
		if json.Compact(&out, raw) == nil {
			b = out.Bytes()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sound == nil || len(s.sound) >= maxSchemas {
		s.sound = make(map[string][]byte)
	}
	s.sound[key] = b
	return b
}
