package signal

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"herald/platforms"
)

// peopleKept is how many people are remembered over restarts, and peopleKnown how many at all.
const (
	peopleKept  = 2000
	peopleKnown = 20000
)

// person is somebody as Signal names them.
type person struct {
	number, uuid, name string
	// chat is the id under which our direct chat with them began: it does not change when the number becomes known
	// later, or a new conversation would begin.
	chat platforms.ChatID
}

// keptPerson is the fact "person/<uuid>".
type keptPerson struct {
	Number string           `json:"number,omitempty"`
	Chat   platforms.ChatID `json:"chat,omitempty"`
}

// people knows which number belongs to which UUID.
type people struct {
	memory platforms.Memory

	mu       sync.Mutex
	byUUID   map[string]*person
	byNumber map[string]*person
	kept     int
}

const personSpace = "person/"

func newPeople(memory platforms.Memory) *people {
	return &people{memory: memory, byUUID: map[string]*person{}, byNumber: map[string]*person{}}
}

// load reads what an earlier run has kept.
func (p *people) load(ctx context.Context) error {
	facts, err := p.memory.Recall(ctx, personSpace)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range facts {
		var k keptPerson
		if json.Unmarshal(f.Data, &k) != nil {
			continue
		}
		if who := p.meet(k.Number, strings.TrimPrefix(f.Key, personSpace), ""); who != nil && k.Chat != "" {
			who.chat = k.Chat
		}
		p.kept++
	}
	return nil
}

// meet notes the ids of a person and returns what is known of them, nil for nobody. The caller holds the lock.
func (p *people) meet(number, uuid, name string) *person {
	number, uuid = tidyNumber(number), strings.ToLower(uuid)
	if !strings.HasPrefix(number, "+") {
		number = ""
	}
	who := p.byUUID[uuid]
	if who == nil || uuid == "" {
		who = p.byNumber[number]
		if who != nil && uuid != "" && who.uuid != "" && who.uuid != uuid {
			who = nil // the number has a new owner
		}
	}
	switch {
	case number == "" && uuid == "":
		return nil
	case who == nil:
		who = &person{}
		if len(p.byUUID)+len(p.byNumber) > peopleKnown {
			return &person{number: number, uuid: uuid, name: name}
		}
	}
	if number != "" {
		who.number = number
		p.byNumber[number] = who
	}
	if uuid != "" {
		who.uuid = uuid
		p.byUUID[uuid] = who
	}
	if name != "" {
		who.name = name
	}
	return who
}

// learn notes what a list of contacts says.
func (p *people) learn(number, uuid, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.meet(number, uuid, name)
}

// sender notes who sent something and returns what is known of them. A new pair, and the id of their chat, is kept.
func (p *people) sender(ctx context.Context, number, uuid, name string) (person, bool) {
	p.mu.Lock()
	known := p.byUUID[strings.ToLower(uuid)]
	fresh := known == nil || known.number == "" && number != ""
	who := p.meet(number, uuid, name)
	if who == nil {
		p.mu.Unlock()
		return person{}, false
	}
	if who.chat == "" {
		who.chat, fresh = platforms.ChatID(who.id()), true
	}
	out := *who
	keep := fresh && out.uuid != "" && p.kept < peopleKept
	if keep {
		p.kept++
	}
	p.mu.Unlock()
	if keep {
		data, _ := json.Marshal(keptPerson{Number: out.number, Chat: out.chat})
		_ = p.memory.Keep(ctx, platforms.Fact{Key: personSpace + out.uuid, Data: data}) // only a convenience
	}
	return out, true
}

// find returns what is known of an id, a number or a UUID.
func (p *people) find(id string) person {
	p.mu.Lock()
	defer p.mu.Unlock()
	if who := p.byUUID[strings.ToLower(id)]; who != nil {
		return *who
	}
	if who := p.byNumber[tidyNumber(id)]; who != nil {
		return *who
	}
	if strings.HasPrefix(id, "+") {
		return person{number: tidyNumber(id)}
	}
	return person{uuid: id}
}

// id is how people are named to the core: the number where it is known, else the UUID.
func (p person) id() string {
	if p.number != "" {
		return p.number
	}
	return p.uuid
}

// stable is the id that does not change: the UUID where it is known.
func (p person) stable() string {
	if p.uuid != "" {
		return p.uuid
	}
	return p.number
}
