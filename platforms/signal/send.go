package signal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"herald/platforms"
	"herald/platforms/wire"
)

// Send delivers one message. Errors are *platforms.SendError. Signal has no edits here, so an Outgoing with Edit is
// Unsupported. A message without text and files is success without a send.
//
// Files go with the text: pictures up to 32 at once, others one by one. When a message needs several calls and a later
// one fails, the receipt's notes say what is missing, because the first part is visible already.
func (a *Adapter) Send(ctx context.Context, out platforms.Outgoing) (platforms.Receipt, error) {
	params, err := a.target(out.Address)
	if err != nil {
		return platforms.Receipt{}, err
	}
	if out.Edit != "" {
		return platforms.Receipt{}, platforms.Failure(platforms.Unsupported, "messages on Signal are not edited")
	}
	if n := units(out.Text.Body); n > TextLimit {
		return platforms.Receipt{}, platforms.Failure(platforms.TooLong, "the text has %d UTF-16 units, the limit is %d", n, TextLimit)
	}
	o := &outbound{a: a, out: out, params: params, Parts: wire.Parts{Platform: "Signal", Log: &a.s.Log}} // no chat for the log: it is a number
	o.quote()
	if err := a.gate.Check(wire.Account); err != nil {
		return platforms.Receipt{}, err
	}
	a.receipts(ctx, out.Address)
	a.stopTyping(ctx, out.Address, params)
	parts := o.parts(ctx)
	defer o.clean()
	for i, part := range parts {
		err := o.send(ctx, part)
		if err == nil {
			continue
		}
		var late []platforms.Attachment
		for _, p := range parts[i:] {
			for _, f := range p.files {
				late = append(late, f.Attachment)
			}
		}
		if err := o.Failed(err, late...); err != nil {
			return platforms.Receipt{}, err
		}
		break
	}
	return o.Receipt, nil
}

// outbound is one Outgoing on its way.
type outbound struct {
	a      *Adapter
	out    platforms.Outgoing
	params map[string]any // where it goes
	quoted map[string]any // what it quotes
	wire.Parts
	temps []string
}

// part is one message of Signal's.
type part struct {
	text  platforms.Text
	files []outFile
	voice bool
}

// quote reads what the message answers. Only the first part quotes. What can't be quoted keeps no answer back.
func (o *outbound) quote() {
	if o.out.ReplyTo == "" {
		return
	}
	at, author, err := o.a.parseID(o.out.Address, o.out.ReplyTo)
	if err != nil {
		o.a.s.Log.Debug().Err(err).Msg("the message to answer can't be quoted")
		return
	}
	o.quoted = map[string]any{"quoteTimestamp": at, "quoteAuthor": author,
		"quoteMessage": o.a.texts.find(string(o.out.Address.Chat), string(o.out.ReplyTo))}
}

// send makes one call. Once a part is visible, one that was certainly not sent is tried once more, after the wait that
// Signal asked for, if there is time for it.
func (o *outbound) send(ctx context.Context, p part) error {
	err := o.attempt(ctx, p)
	var e *platforms.SendError
	if !o.Some && o.quoted != nil && errors.As(err, &e) && e.Certainty == platforms.NotSent && strings.Contains(e.Err.Error(), "quote") {
		o.quoted = nil // the daemon does not take the quote; the answer goes out without
		err = o.attempt(ctx, p)
	}
	if !o.Some || !errors.As(err, &e) || e.Certainty != platforms.NotSent || e.Kind != platforms.RateLimited && e.Kind != platforms.Transient {
		return err
	}
	// A part is visible: the rest can't be tried again later as a message of its own.
	pause := max(e.RetryAfter, o.a.s.BackoffMin)
	if end, bounded := ctx.Deadline(); bounded && time.Until(end) < pause+5*time.Second {
		return err
	}
	if wire.Sleep(ctx, pause) != nil {
		return err
	}
	o.a.s.Metrics.GateWaited(pause)
	return o.attempt(ctx, p)
}

func (o *outbound) attempt(ctx context.Context, p part) error {
	a := o.a
	if err := a.gate.Check(wire.Account); err != nil {
		return err
	}
	params := map[string]any{}
	for k, v := range o.params {
		params[k] = v
	}
	if !o.Some {
		for k, v := range o.quoted {
			params[k] = v
		}
	}
	o.write(params, p)
	f := a.echo.begin(string(o.out.Address.Chat), p.text.Body)
	answer, err := a.rpc.send(ctx, params, p.files)
	if err != nil {
		e := a.judge(outcome(err))
		if e.Certainty == platforms.Unknown {
			a.echo.gone(f)
		} else {
			a.echo.done(f, 0)
		}
		return e
	}
	a.echo.done(f, answer.Timestamp)
	return o.settle(answer)
}

// settle reads the results of a call that was answered. In a group it counts as sent when anybody got it.
func (o *outbound) settle(answer sendAnswer) error {
	missed, limited := map[string]int{}, []sendResult{}
	for _, r := range answer.Results {
		if r.ok() {
			continue
		}
		missed[r.Type]++
		if r.RetryAfter > 0 || r.Type == "RATE_LIMIT_FAILURE" {
			limited = append(limited, r)
		}
	}
	if len(missed) > 0 {
		if failed := ofResults(answer.Results); failed != nil {
			return o.a.judge(failed)
		}
		_ = o.a.limited(ofResults(limited))
		for kind, n := range missed {
			o.Receipt.Notes = append(o.Receipt.Notes, fmt.Sprintf("%d of %d members of this group did not get the message (%s).", n, len(answer.Results), kind))
		}
	}
	o.Sent("") // Signal gives no id
	_ = o.a.judge(nil)
	return nil
}

// write puts text, styles and the voice mark into the parameters. A range that does not fit the text is left out.
func (o *outbound) write(params map[string]any, p part) {
	if p.text.Body != "" {
		params["message"] = p.text.Body
	}
	length := units(p.text.Body)
	var styles []string
	for _, s := range p.text.Styles {
		if s.Start < 0 || s.Length <= 0 || s.Start > length || s.Length > length-s.Start {
			o.a.s.Log.Error().Int("start", s.Start).Int("length", s.Length).Int("units", length).Msg("a style outside its text is left out")
			continue
		}
		styles = append(styles, fmt.Sprintf("%d:%d:%s", s.Start, s.Length, s.Kind))
	}
	switch len(styles) {
	case 0:
	case 1:
		params["textStyle"] = styles[0]
	default:
		params["textStyles"] = styles
	}
	if p.voice {
		params["voiceNote"] = true
	}
}
