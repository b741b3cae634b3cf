package teamstest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"
)

// outbox is what the bot has not taken yet. Server.mu guards it.
type outbox struct {
	endpoint  string
	held      bool
	lanes     map[string]*lane
	delivered []*parcel // the newest ones, for Replay
	log       []Delivery
	lost      int
}

// lane is the order of one room: a parcel waits until the one before was taken or given up.
type lane struct {
	name    string
	parcels []*parcel
	running bool
}

// parcel is an activity on its way.
type parcel struct {
	lane     string
	id, kind string
	body     []byte
	flaw     Flaw
	attempts int
}

// kept is how many delivered activities Replay can reach.
const kept = 100

// SetEndpoint says where the bot takes activities from now on. What waits is posted there.
func (s *Server) SetEndpoint(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outbox.endpoint = url
	s.startLanes()
}

// Pending returns how many activities the bot has not taken: not answered by a 2xx status, and not given up.
// Invokes don't count.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, l := range s.outbox.lanes {
		n += len(l.parcels)
	}
	return n
}

// Lost returns how many activities were given up after Options.Attempts.
func (s *Server) Lost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outbox.lost
}

// Deliveries returns all attempts to hand an activity to the bot, oldest first.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.outbox.log)
}

// Replay offers the newest n activities that the bot took again, with new tokens, oldest of them first.
func (s *Server) Replay(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.outbox.delivered
	for _, p := range list[max(0, len(list)-n):] {
		s.enqueue(&parcel{lane: p.lane, id: p.id, kind: p.kind, body: p.body})
	}
}

// Hold keeps activities back from now on, invokes excepted.
func (s *Server) Hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outbox.held = true
}

// Release lets what was held go, in an order.
func (s *Server) Release(order Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outbox.held = false
	for name, l := range maps.Clone(s.outbox.lanes) {
		switch order {
		case Backwards:
			slices.Reverse(l.parcels)
		case Twice, Doubled:
			var twice []*parcel
			for _, p := range l.parcels {
				second := *p
				twice = append(twice, p, &second)
			}
			l.parcels = twice
		}
		if order == AtOnce || order == Doubled {
			s.spread(name, l)
		}
	}
	s.startLanes()
}

// spread gives every parcel of a lane a lane of its own. A lane that runs is left alone but for what it has not begun.
func (s *Server) spread(name string, l *lane) {
	for len(l.parcels) > 1 {
		p := l.parcels[len(l.parcels)-1]
		l.parcels = l.parcels[:len(l.parcels)-1]
		p.lane = name + " " + randomHex(4)
		s.outbox.lanes[p.lane] = &lane{name: p.lane, parcels: []*parcel{p}}
	}
}

// Push posts an activity of any shape to the bot, in the order of a room. It must have an id and a type.
func (s *Server) Push(room string, activity json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue(room, activity)
}

// queue puts an activity on its way. The caller holds mu.
func (s *Server) queue(room string, body json.RawMessage) {
	var head struct{ ID, Type string }
	_ = json.Unmarshal(body, &head)
	s.enqueue(&parcel{lane: room, id: head.ID, kind: head.Type, body: body})
}

func (s *Server) enqueue(p *parcel) {
	l := s.outbox.lanes[p.lane]
	if l == nil {
		l = &lane{name: p.lane}
		s.outbox.lanes[p.lane] = l
	}
	l.parcels = append(l.parcels, p)
	s.startLane(l)
}

func (s *Server) startLanes() {
	for _, l := range s.outbox.lanes {
		s.startLane(l)
	}
}

func (s *Server) startLane(l *lane) {
	if l.running || len(l.parcels) == 0 || s.outbox.held || s.outbox.endpoint == "" || s.ending.Err() != nil {
		return
	}
	l.running = true
	s.workers.Go(func() { s.work(l) })
}

// work delivers a lane until it is empty.
func (s *Server) work(l *lane) {
	for {
		s.mu.Lock()
		if len(l.parcels) == 0 || s.outbox.held || s.ending.Err() != nil {
			l.running = false
			if len(l.parcels) == 0 {
				delete(s.outbox.lanes, l.name)
			}
			s.mu.Unlock()
			return
		}
		p := l.parcels[0]
		s.mu.Unlock()
		d := s.attempt(p)
		if s.settle(l, p, d) {
			continue
		}
		timer := time.NewTimer(s.o.RetryEvery)
		select {
		case <-timer.C:
		case <-s.ending.Done():
		}
		timer.Stop()
	}
}

// settle takes a parcel that is done off its lane, and reports whether it did.
func (s *Server) settle(l *lane, p *parcel, d Delivery) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := d.Status/100 == 2
	if !taken && (s.o.Attempts == 0 || p.attempts < s.o.Attempts) {
		return false
	}
	l.parcels = slices.DeleteFunc(l.parcels, func(x *parcel) bool { return x == p })
	if !taken {
		s.outbox.lost++
		return true
	}
	s.outbox.delivered = append(s.outbox.delivered, p)
	if n := len(s.outbox.delivered); n > kept {
		s.outbox.delivered = s.outbox.delivered[n-kept:]
	}
	return true
}

// attempt posts a parcel once.
func (s *Server) attempt(p *parcel) Delivery {
	p.attempts++
	s.mu.Lock()
	endpoint := s.outbox.endpoint
	s.mu.Unlock()
	begun := time.Now()
	d := Delivery{Activity: p.id, Type: p.kind, Attempt: p.attempts}
	status, body, err := s.post(endpoint, p.body, p.flaw)
	d.Status, d.Body, d.Took = status, body, time.Since(begun)
	if err != nil {
		d.Err = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outbox.log = append(s.outbox.log, d)
	if most := 2 * cmp.Or(s.o.Keep, 50000); len(s.outbox.log) > most {
		s.outbox.log = slices.Clone(s.outbox.log[len(s.outbox.log)-most/2:])
	}
	return d
}

// maxAnswer is the most bytes of a bot's answer that are read.
const maxAnswer = 1 << 20

func (s *Server) post(endpoint string, body []byte, flaw Flaw) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(s.ending, s.o.DeliveryTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "Microsoft-SkypeBotApi (Microsoft-BotFramework/3.0)")
	req.Header.Set("x-ms-conversation-id", randomHex(8))
	switch flaw {
	case NoToken:
	case NotBearer:
		req.SetBasicAuth("bot", s.Mint(None))
	default:
		req.Header.Set("Authorization", "Bearer "+s.Mint(flaw))
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, answer, err
}

// Forge posts what a person would write with a flawed token, once, and returns what the bot answered. Nothing of it
// is in the room.
func (s *Server) Forge(p Post, flaw Flaw) Delivery {
	s.mu.Lock()
	r := s.rooms[p.Room]
	a, _ := s.compose(r, p)
	if flaw == AlteredBody {
		a.ServiceURL = "https://smba.trafficmanager.net/elsewhere/"
	}
	s.mu.Unlock()
	return s.attempt(&parcel{id: a.ID, kind: a.Type, body: mustJSON(a), flaw: flaw})
}

// Invocation returns what became of an invoke.
func (s *Server) Invocation(id string) (Invocation, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.invokes[id]
	if i == nil {
		return Invocation{}, false
	}
	return *i, true
}

// invoke posts an invoke activity and keeps the answer. The caller holds mu.
func (s *Server) invoke(a activity, understand func(*Invocation)) string {
	i := &Invocation{ID: a.ID, Name: a.Name}
	s.invokes[a.ID] = i
	body := mustJSON(a)
	s.workers.Go(func() {
		d := s.attempt(&parcel{id: a.ID, kind: a.Type, body: body})
		s.mu.Lock()
		defer s.mu.Unlock()
		i.Done, i.Status, i.Body = true, d.Status, d.Body
		switch {
		case d.Err != "":
			i.Err = "Unable to reach app: " + d.Err
		case d.Status/100 != 2:
			i.Err = "Something went wrong. Please try again. (" + http.StatusText(d.Status) + ")"
		case understand != nil:
			understand(i)
		}
	})
	return a.ID
}
