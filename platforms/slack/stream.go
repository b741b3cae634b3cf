package slack

import (
	"context"
	"strings"

	api "github.com/slack-go/slack"

	"herald/platforms"
	"herald/platforms/wire"
)

// maxStreamText is the most characters of one call of a stream.
const maxStreamText = 12000

// stream is a message that grows by Slack's own streaming.
type stream struct {
	shown string // the Markdown that is there
	// stuck: nothing more can be appended, because it is full or because it is not known what is there.
	stuck bool
}

// streams knows the messages that grow, and those that certainly are no streams.
type streams struct {
	live   *wire.Recent[string, stream]
	plains *wire.Recent[string, struct{}]
	places *wire.Recent[string, struct{}] // where streaming was refused
}

func newStreams() *streams {
	return &streams{
		live: wire.NewRecent[string, stream](1000), plains: wire.NewRecent[string, struct{}](4096),
		places: wire.NewRecent[string, struct{}](1000),
	}
}

func (s *streams) get(channel, ts string) (stream, bool) { return s.live.Get(channel + "/" + ts) }

func (s *streams) put(channel, ts string, v stream) { s.live.Put(channel+"/"+ts, v) }

// plain notes that a message is no stream, or none any more.
func (s *streams) plain(channel, ts string) {
	s.live.Delete(channel + "/" + ts)
	s.plains.Put(channel+"/"+ts, struct{}{})
}

func (s *streams) isPlain(channel, ts string) bool { return s.plains.Has(channel + "/" + ts) }

func (s *streams) forget(channel, ts string) { s.plain(channel, ts) }

func (s *streams) refuse(place string) { s.places.Put(place, struct{}{}) }

func (s *streams) refused(place string) bool { return s.places.Has(place) }

// startStream sends a message that will grow as a native stream. done is false when it must go out as a plain one.
func (o *outbound) startStream(ctx context.Context) (done bool, err error) {
	a := o.a
	text := o.markdown()
	user, _ := a.spoke.Get(o.out.Address)
	place := o.channel + "/" + o.thread
	switch {
	case !o.out.Interim, o.out.Progress, o.thread == "", len(o.out.Buttons) > 0, len(text) > maxStreamText,
		!a.s.streaming, a.off.streams.Load(), a.streams.refused(place), user == "", o.firstIsBroadcast(ctx):
		return false, nil
	}
	if err := a.gate.pass(ctx, "chat.startStream", o.channel, true); err != nil {
		if a.gate.open("chat.startStream", o.channel) != nil {
			return true, err
		}
		return false, nil // our own pace: a plain message serves as well
	}
	ts := ""
	err = a.do(ctx, "chat.startStream", o.channel, func(ctx context.Context) (err error) {
		_, ts, err = a.api.StartStreamContext(ctx, o.channel, api.MsgOptionTS(o.thread), api.MsgOptionMarkdownText(text),
			api.MsgOptionRecipientTeamID(a.self().team), api.MsgOptionRecipientUserID(string(user)))
		return err
	})
	if err == nil {
		a.streams.put(o.channel, ts, stream{shown: text})
		o.Sent(platforms.MessageID(ts))
		return true, nil
	}
	e := platforms.AsSendError(err)
	if e.Certainty == platforms.Unknown {
		return true, err
	}
	switch e.Kind {
	case platforms.BadRequest, platforms.Unsupported:
	default:
		return true, err
	}
	switch code(err) {
	case "missing_scope", "unknown_method", "not_allowed_token_type", "feature_not_enabled", "no_permission", "method_deprecated":
		a.off.streams.Store(true)
	default:
		a.streams.refuse(place)
	}
	a.s.Log.Warn().Str("account", string(a.account.ID)).Str("cause", e.Err.Error()).Msg("Slack refuses native streaming here; answers grow by edits")
	return false, nil
}

// firstIsBroadcast: a stream can't be shown in the channel too.
func (o *outbound) firstIsBroadcast(ctx context.Context) bool {
	if !o.a.s.ReplyBroadcast {
		return false
	}
	has, err := o.a.shown.Has(ctx, o.channel+"/"+o.thread)
	return err != nil || !has
}

// growStream edits a message that is a stream. done is false when chat.update has to do it: the message is not one, or
// its text is no longer what was streamed and the stream has been ended for it.
func (o *outbound) growStream(ctx context.Context) (done bool, err error) {
	a, ts := o.a, string(o.out.Edit)
	s, live := a.streams.get(o.channel, ts)
	if !live {
		return false, o.endUnknown(ctx)
	}
	text := o.markdown()
	more, grows := strings.CutPrefix(text, s.shown)
	switch {
	case o.out.Interim && s.stuck:
		return true, nil
	case o.out.Interim && grows:
		return o.appendStream(ctx, s, more)
	case !o.out.Interim && grows && !s.stuck && len(more) <= maxStreamText:
		return o.sealStream(ctx, more)
	}
	return false, o.stopStream(ctx)
}

// appendStream shows what has been added.
func (o *outbound) appendStream(ctx context.Context, s stream, more string) (bool, error) {
	a, ts := o.a, string(o.out.Edit)
	for more != "" {
		part := cut(more, maxStreamText)
		if err := a.gate.pass(ctx, "chat.appendStream", o.channel, true); err != nil {
			return true, err
		}
		err := a.do(ctx, "chat.appendStream", o.channel, func(ctx context.Context) error {
			_, _, err := a.api.AppendStreamContext(ctx, o.channel, ts, api.MsgOptionMarkdownText(part))
			return err
		})
		e := platforms.AsSendError(err)
		switch {
		case e == nil:
			s.shown += part
			more = more[len(part):]
			a.streams.put(o.channel, ts, s)
			continue
		case e.Certainty == platforms.Unknown, e.Kind == platforms.TooLong:
			s.stuck = true // the end will be written by an edit
			a.streams.put(o.channel, ts, s)
			return true, err
		case e.Kind == platforms.RateLimited, e.Kind == platforms.Transient, e.Kind == platforms.AuthFailed, e.Kind == platforms.MessageGone:
			return true, err
		}
		if !overStream[code(err)] {
			a.s.Log.Warn().Str("account", string(a.account.ID)).Str("cause", e.Err.Error()).Msg("a native stream broke off; the answer grows by edits")
			return false, o.stopStream(ctx)
		}
		a.streams.plain(o.channel, ts)
		return false, nil
	}
	return true, nil
}

// overStream are the answers that say that a message is no stream, or none any more.
var overStream = map[string]bool{
	"message_not_in_streaming_state": true, "not_in_streaming_state": true, "streaming_state_conflict": true,
	"message_not_owned_by_app": true, "not_streaming": true, "stream_not_found": true, "invalid_ts": true,
}

// sealStream ends a stream with its last words and the buttons.
func (o *outbound) sealStream(ctx context.Context, more string) (bool, error) {
	a, ts := o.a, string(o.out.Edit)
	options := []api.MsgOption{}
	if more != "" {
		options = append(options, api.MsgOptionMarkdownText(more))
	}
	var blocks []api.Block
	if len(o.out.Buttons) > 0 {
		blocks = buttonBlocks("", "", o.out.Buttons)
	}
	if a.s.FeedbackButtons {
		blocks = append(blocks, feedback())
	}
	if len(blocks) > 0 {
		options = append(options, api.MsgOptionBlocks(blocks...))
	}
	if o.out.Nonce != "" {
		options = append(options, api.MsgOptionMetadata(o.metadata()))
	}
	err := a.do(ctx, "chat.stopStream", o.channel, func(ctx context.Context) error {
		_, _, err := a.api.StopStreamContext(ctx, o.channel, ts, options...)
		return err
	})
	e := platforms.AsSendError(err)
	switch {
	case e == nil:
		a.streams.plain(o.channel, ts)
		return true, nil
	case e.Certainty == platforms.Unknown:
		s, _ := a.streams.get(o.channel, ts)
		s.stuck = true // the next try writes the whole text
		a.streams.put(o.channel, ts, s)
		return true, err
	case e.Kind == platforms.RateLimited, e.Kind == platforms.Transient, e.Kind == platforms.AuthFailed, e.Kind == platforms.MessageGone:
		return true, err
	}
	return false, o.stopStream(ctx)
}

// stopStream ends a stream without another word, so that chat.update may change it.
func (o *outbound) stopStream(ctx context.Context) error {
	a, ts := o.a, string(o.out.Edit)
	err := a.do(ctx, "chat.stopStream", o.channel, func(ctx context.Context) error {
		_, _, err := a.api.StopStreamContext(ctx, o.channel, ts)
		return err
	})
	e := platforms.AsSendError(err)
	if e != nil && (e.Kind == platforms.RateLimited || e.Kind == platforms.Transient || e.Kind == platforms.AuthFailed ||
		e.Kind == platforms.MessageGone) {
		return err
	}
	a.streams.plain(o.channel, ts)
	return nil
}

// endUnknown ends the stream that a message of an earlier process may be.
func (o *outbound) endUnknown(ctx context.Context) error {
	a := o.a
	if o.thread == "" || !a.s.streaming || a.off.streams.Load() || a.streams.isPlain(o.channel, string(o.out.Edit)) {
		return nil
	}
	return o.stopStream(ctx)
}
