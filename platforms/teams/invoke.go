package teams

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"herald/platforms"
	"herald/platforms/wire"
)

// invoke handles an activity whose sender waits for an answer.
func (a *Adapter) invoke(ctx context.Context, act *activity, body []byte) (reply, error) {
	switch act.Name {
	case "adaptiveCard/action":
		return a.pressed(ctx, act, body)
	case "fileConsent/invoke":
		return a.consented(ctx, act)
	}
	a.s.Metrics.Dropped(dropService)
	return reply{status: http.StatusNotImplemented}, nil
}

// verb marks our buttons.
const verb = "herald"

// buttonData returns the data of one of our buttons.
func buttonData(value json.RawMessage) (string, bool) {
	var v struct {
		Data string `json:"herald"`
	}
	if json.Unmarshal(value, &v) != nil || v.Data == "" || len(v.Data) > wire.ButtonData {
		return "", false
	}
	return v.Data, true
}

// invokeAnswer is the body that Teams wants for a press of Action.Execute.
type invokeAnswer struct {
	Status int    `json:"statusCode"`
	Type   string `json:"type"`
	Value  any    `json:"value"`
}

const messageAnswer = "application/vnd.microsoft.activity.message"

// noWord is shown to a presser when the core has said nothing yet.
const noWord = "✓"

// pressed hands a button press to the core, and answers with the core's word when it comes soon.
func (a *Adapter) pressed(ctx context.Context, act *activity, body []byte) (reply, error) {
	var value struct {
		Action struct {
			Verb string          `json:"verb"`
			Data json.RawMessage `json:"data"`
		} `json:"action"`
	}
	data, ok := "", json.Unmarshal(act.Value, &value) == nil
	if ok {
		data, ok = buttonData(value.Action.Data)
	}
	if !ok {
		a.s.Metrics.Dropped(dropService)
		return reply{status: http.StatusOK, body: invokeAnswer{http.StatusBadRequest, "application/vnd.microsoft.error",
			map[string]string{"code": "BadRequest", "message": "This button is not known."}}}, nil
	}
	e := a.frame(act, body)
	e.Addressed = true
	e.Click = &platforms.Click{MessageID: platforms.MessageID(act.ReplyToID), Data: data, Reply: string(e.ID)}
	p := a.presses.begin(e.Click.Reply)
	if err := a.intake.sink.Accept(ctx, e); err != nil {
		a.presses.end(e.Click.Reply)
		return reply{}, err
	}
	a.heard()
	text := a.presses.await(ctx, e.Click.Reply, p, a.s.ClickWait)
	return reply{status: http.StatusOK, body: invokeAnswer{http.StatusOK, messageAnswer, text}, written: func() { close(p.written) }}, nil
}

// presses are the button presses that wait for an answer.
type presses struct {
	mu   sync.Mutex
	open map[string]*press
}

type press struct {
	word    chan string // takes one
	written chan struct{}
}

func (p *presses) begin(id string) *press {
	one := &press{word: make(chan string, 1), written: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[id] = one
	return one
}

// end takes a press off the list: from then on a word comes too late.
func (p *presses) end(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, id)
}

// await returns the core's word, or noWord when none comes in time.
func (p *presses) await(ctx context.Context, id string, one *press, limit time.Duration) string {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case word := <-one.word:
		p.end(id)
		return word
	case <-timer.C:
	case <-ctx.Done():
	}
	p.end(id)
	select {
	case word := <-one.word: // in the last moment
		return word
	default:
		return noWord
	}
}

// say gives the core's word to a press that waits, and reports whether it was in time.
func (p *presses) say(id, word string) (*press, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.open[id]
	if one == nil {
		return nil, false
	}
	delete(p.open, id)
	one.word <- word
	return one, true
}

// AnswerClick shows text to the presser alone. When the press was answered without it already, text becomes a message at
// the place of the button.
func (a *Adapter) AnswerClick(ctx context.Context, at platforms.Address, click platforms.Click, text string) error {
	if text == "" {
		text = noWord
	}
	if one, ok := a.presses.say(click.Reply, text); ok {
		select {
		case <-one.written:
			return nil
		case <-ctx.Done():
			return &platforms.SendError{Kind: platforms.Transient, Certainty: platforms.Unknown, Err: ctx.Err()}
		}
	}
	if text == noWord {
		return nil
	}
	_, err := a.Send(ctx, platforms.Outgoing{Address: at, Text: platforms.Text{Body: text, Plain: text}})
	return err
}

// whisper answers a press that still waits, with a text for the presser alone.
func (a *Adapter) whisper(ctx context.Context, out platforms.Outgoing) error {
	one, ok := a.presses.say(out.Private, out.Text.AsPlain())
	if !ok {
		return platforms.Failure(platforms.Unsupported, "the button was pressed too long ago for a private answer")
	}
	select {
	case <-one.written:
		return nil
	case <-ctx.Done():
		return &platforms.SendError{Kind: platforms.Transient, Certainty: platforms.Unknown, Err: ctx.Err()}
	}
}
