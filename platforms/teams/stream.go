package teams

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"herald/platforms"
	"herald/platforms/wire"
)

// Teams shows one growing answer in a personal chat as a stream: typing activities whose text begins with that of the one
// before, and at the end a message. It takes two minutes at most.
// https://learn.microsoft.com/microsoftteams/platform/bots/streaming-ux

// streams are those that go on, one in a chat.
type streams struct {
	mu     sync.Mutex
	live   map[string]*stream         // by chat
	denied *wire.Recent[string, bool] // chats where Teams allows none
}

// streamPace is the least time between two states of a stream: Teams takes one in a second.
const streamPace = time.Second

// streamQuiet is after how long without a new state a stream is no sign of life any more.
const streamQuiet = 5 * time.Second

// deniedKept is how many chats without streams are remembered.
const deniedKept = 1000

// stream is a growing answer.
type stream struct {
	chat, id string
	begun    time.Time

	touched  time.Time  // guarded by streams.mu
	turn     sync.Mutex // one request at a time
	last     time.Time
	sequence int
	text     string
	over     bool
}

// find returns the stream that is a message.
func (s *streams) find(chat, id string) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.live[chat]; one != nil && one.id == id {
		return one
	}
	return nil
}

// free reports whether a stream may begin in a chat. One that its owner has left is no hindrance after limit.
func (s *streams) free(chat string, now time.Time, limit time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.live[chat]
	return !s.denied.Has(chat) && (one == nil || now.Sub(one.begun) > limit)
}

func (s *streams) begin(one *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[one.chat] = one
}

func (s *streams) end(one *stream) {
	one.over = true
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live[one.chat] == one {
		delete(s.live, one.chat)
	}
}

// running reports whether a stream shows already that an answer is being made: one that was continued lately.
func (s *streams) running(chat string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.live[chat]
	return one != nil && now.Sub(one.touched) < streamQuiet
}

// touch notes that a stream goes on.
func (s *streams) touch(one *stream, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.touched = now
}

// streamable reports whether a message is the beginning of an answer that can be a stream.
func (o *outbound) streamable() bool {
	return o.out.Interim && !o.out.Progress && o.Type == personal && o.out.Text.AsBody() != "" && len(o.out.Buttons) == 0 &&
		len(o.out.Attachments) == 0 && o.a.streams.free(o.chat, o.a.s.Clock.Now(), 2*o.a.s.StreamLife)
}

// beginStream shows the first words of an answer. Where Teams refuses a stream, they become a plain message that is
// edited.
func (o *outbound) beginStream(ctx context.Context) error {
	text := o.out.Text.AsBody()
	now := o.a.s.Clock.Now()
	one := &stream{chat: o.chat, begun: now, last: now, touched: now, sequence: 1, text: text}
	act := outActivity{Type: "typing", Text: text, TextFormat: "markdown",
		Entities: []any{streamInfo{Type: "streaminfo", Kind: "streaming", Sequence: 1}}}
	id, c, err := o.post(ctx, "", act, false)
	if err != nil && streamRefused(c, err) {
		o.a.s.Log.Info().Str("chat", o.chat).Err(err).Msg("Teams refuses a stream; the answer is a message that is edited")
		o.a.streams.denied.Put(o.chat, true)
		return o.fresh(ctx)
	}
	if err != nil {
		return err
	}
	if id == "" { // it can't be continued
		return &platforms.SendError{Kind: platforms.Transient, Certainty: platforms.Unknown, Err: errGarbled}
	}
	one.id = id
	o.a.streams.begin(one)
	o.sent(ctx, id)
	return nil
}

// streamRefused reports whether Teams has refused the stream itself.
func streamRefused(c *call, err error) bool {
	if c == nil || platforms.AsSendError(err).Certainty == platforms.Unknown {
		return false
	}
	return c.Status == http.StatusForbidden || c.Status == http.StatusBadRequest || c.Status == http.StatusNotFound
}

var errNoExtension = errors.New("the preview does not go on from the one before")

// continueStream shows the next state of a stream, or its end. done false means that the stream is over and the message,
// if there is one, has to be edited.
func (o *outbound) continueStream(ctx context.Context, one *stream, act outActivity) (done bool, err error) {
	one.turn.Lock()
	defer one.turn.Unlock()
	switch {
	case one.over:
		return false, nil
	case !o.out.Interim:
		return o.endStream(ctx, one, act)
	case o.a.s.Clock.Now().Sub(one.begun) >= o.a.s.StreamLife:
		// Teams would end it soon. It becomes a message, which later states edit.
		return o.endStream(ctx, one, act)
	case act.Text == one.text:
		return true, nil
	case !strings.HasPrefix(act.Text, one.text):
		return true, &platforms.SendError{Kind: platforms.Unsupported, Err: errNoExtension}
	case o.a.s.limited && o.a.s.Clock.Now().Sub(one.last) < streamPace:
		return true, tooSoon(streamPace - o.a.s.Clock.Now().Sub(one.last))
	}
	one.last = o.a.s.Clock.Now()
	o.a.streams.touch(one, one.last)
	next := outActivity{Type: "typing", Text: act.Text, TextFormat: "markdown",
		Entities: []any{streamInfo{Type: "streaminfo", ID: one.id, Kind: "streaming", Sequence: one.sequence + 1}}}
	_, c, err := o.post(ctx, "", next, true)
	switch {
	case err == nil:
		one.sequence, one.text = one.sequence+1, act.Text
		return true, nil
	case streamRefused(c, err):
		o.lost(one, err)
		return false, nil
	case platforms.AsSendError(err).Certainty == platforms.Unknown:
		one.sequence++ // it may have been taken
	}
	return true, err
}

// endStream makes the message of a stream. An end that does not go on from what is shown is reached by an edit of it.
func (o *outbound) endStream(ctx context.Context, one *stream, act outActivity) (done bool, err error) {
	goesOn := strings.HasPrefix(act.Text, one.text)
	if !goesOn {
		act = outActivity{Type: "message", Text: one.text, TextFormat: "markdown"}
	}
	if card := cardOf("", act.rows); card != nil { // a stream's end is one message, with a card beside the text
		act.Attachments = append(act.Attachments, *card)
	}
	act.Entities = []any{streamInfo{Type: "streaminfo", ID: one.id, Kind: "final"}}
	act.ID = ""
	_, c, err := o.post(ctx, "", act, false)
	switch {
	case err == nil:
		o.a.streams.end(one)
		return goesOn, nil
	case streamRefused(c, err):
		o.lost(one, err)
		return false, nil
	}
	return true, err
}

// lost gives a stream up.
func (o *outbound) lost(one *stream, err error) {
	o.a.s.Log.Info().Str("chat", o.chat).Err(err).Msg("a stream has ended early; its message is edited instead")
	o.a.streams.end(one)
}
