package toolbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"herald/platforms"
	"herald/sessions"
	"herald/tools"
	"herald/tools/memory"
)

// memories keeps what is remembered apart by person, so that nothing that one of them has said reaches the
// prompt of another (P6). Who comes through the profile's own door (the browser chat) has the files of the memory
// folder itself; everybody else, and each room where several people share one conversation, has a folder
// below it.
type memories struct {
	o   Options
	opt memory.Options // of the profile's owner

	mu     sync.Mutex
	stores map[string]*memory.Store // by folder
}

// maxMemories bounds how many stores are kept open; they hold no open file, so a dropped one is simply made again.
const maxMemories = 256

func newMemories(o Options, opt memory.Options) *memories {
	return &memories{o: o, opt: opt, stores: map[string]*memory.Store{}}
}

// of returns the store of a conversation. A job has the store of the chat it was made in, or its own when it was made elsewhere.
func (m *memories) of(o sessions.Origin) *memory.Store {
	if t, ok := m.o.Task(o.Address); ok && t.Origin != nil {
		o = *t.Origin
	}
	dir := m.dir(o)
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.stores[dir]; s != nil {
		return s
	}
	if len(m.stores) >= maxMemories {
		clear(m.stores)
	}
	opt := m.opt
	opt.Dir = dir
	s := memory.NewStore(opt)
	m.stores[dir] = s
	return s
}

// caller returns the store of a tool call's conversation.
func (m *memories) caller(c tools.Caller) *memory.Store {
	if o, ok := m.o.Origin(sessions.TurnID(c.Turn)); ok {
		return m.of(o)
	}
	return m.of(sessions.Origin{User: platforms.UserID(c.User), Address: platforms.Address{Platform: platforms.Name(c.Platform),
		Account: platforms.AccountID(c.Account), Chat: platforms.ChatID(c.Chat), Thread: platforms.ThreadID(c.Thread)}})
}

// dir is where a conversation's memory is.
func (m *memories) dir(o sessions.Origin) string {
	at := o.Address
	switch {
	case at.Platform == "" || m.o.Trusted(at.AccountOf()):
		return m.opt.Dir
	case o.Shared || o.User == "":
		return filepath.Join(m.opt.Dir, "rooms", fileName(at.String()))
	}
	return filepath.Join(m.opt.Dir, "people", fileName(fmt.Sprintf("%s-%s", at.Platform, o.User)))
}

// fileName makes a file name of an id that comes from outside; different ids give different names.
func fileName(id string) string {
	var b strings.Builder
	plain := true
	for _, r := range id {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			b.WriteRune(r)
			continue
		}
		plain = false
		b.WriteByte('_')
	}
	if plain && len(id) <= 100 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	name := b.String()
	return name[:min(len(name), 60)] + "." + hex.EncodeToString(sum[:6])
}
