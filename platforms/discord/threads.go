package discord

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/bwmarrin/discordgo"

	"herald/platforms"
	"herald/platforms/wire"
)

const (
	// threadsKept is how many threads are remembered in which the bot takes part, inlineKept how many that could
	// not be opened, expectedKept how many are still to be opened.
	threadsKept, inlineKept, expectedKept = 5000, 1000, 1000
	// openTries is how often opening a thread is tried before the answer goes to the channel.
	openTries = 3
	// archiveAfter is when Discord puts a silent thread away, in minutes.
	archiveAfter = 1440
)

// threads knows where the bot takes part, and opens threads on messages.
type threads struct {
	a      *Adapter
	active *platforms.Marks // threads where no mention is needed
	inline *platforms.Marks // threads that could not be opened: their answers go to the channel

	mu       sync.Mutex                         // guards the tries of expectations
	expected *wire.Recent[string, *expectation] // by the thread's id, which is the message's
}

// expectation is a thread that is opened by the first message to it.
type expectation struct {
	parent string
	title  string
	tries  int
}

func newThreads(a *Adapter) *threads {
	return &threads{
		a: a, expected: wire.NewRecent[string, *expectation](expectedKept),
		active: platforms.NewMarks(a.s.Memory, "thread", threadsKept),
		inline: platforms.NewMarks(a.s.Memory, "inline", inlineKept),
	}
}

// expect notes that the answer to a message goes into a thread that does not exist yet.
func (t *threads) expect(message, parent, title string) {
	if p, ok := t.a.rooms.get(message); ok && p.thread() {
		return // it is open: the message came once more
	}
	t.expected.Change(message, func(e **expectation) {
		if *e == nil {
			*e = &expectation{parent: parent, title: title}
		}
	})
}

func (t *threads) waiting(thread string) *expectation {
	e, _ := t.expected.Get(thread)
	return e
}

// gone forgets what is expected of a thread.
func (t *threads) gone(thread string) {
	t.expected.Delete(thread)
}

// joined reports whether the bot takes part in a thread.
func (t *threads) joined(ctx context.Context, thread string) (bool, error) {
	if t.waiting(thread) != nil {
		return true, nil
	}
	return t.active.Has(ctx, thread)
}

// join notes that it does.
func (t *threads) join(ctx context.Context, thread string) {
	if err := t.active.Add(ctx, thread); err != nil && ctx.Err() == nil {
		t.a.s.Log.Warn().Err(err).Msg("a thread can't be remembered: it may need a mention after a restart")
	}
}

// target is where a message really goes.
type target struct {
	channel string
	// onto is the message that is answered in the channel because its thread could not be opened.
	onto string
	note string // says so, once
}

// where returns the channel of an address and opens its thread where that is still to be done. Nothing is visible
// before that has succeeded. Errors are *platforms.SendError, and certain.
func (t *threads) where(ctx context.Context, at platforms.Address) (target, error) {
	thread, chat := string(at.Thread), string(at.Chat)
	if thread == "" {
		return target{channel: chat}, nil
	}
	inline, err := t.inline.Has(ctx, thread)
	if err != nil {
		return target{}, &platforms.SendError{Kind: platforms.Transient, Err: err}
	}
	if inline {
		return target{channel: chat, onto: thread}, nil
	}
	if e := t.waiting(thread); e != nil {
		return t.open(ctx, thread, e)
	}
	return target{channel: thread}, nil
}

// there is where for what is not worth opening a thread: it uses the channel until the thread is open.
func (t *threads) there(ctx context.Context, at platforms.Address) string {
	thread := string(at.Thread)
	if thread == "" || t.waiting(thread) != nil {
		return string(at.Chat)
	}
	if inline, err := t.inline.Has(ctx, thread); err == nil && inline {
		return string(at.Chat)
	}
	return thread
}

// make makes the thread of a message. One that exists already is fine. A call whose answer was lost may have made it all the
// same: Discord is asked, and absent is true where it certainly is not there.
func (t *threads) make(ctx context.Context, parent, message, title string) (absent bool, err error) {
	var c channel
	err = t.a.do(ctx, call{
		method: http.MethodPost, route: "/channels/{channel}/messages/{message}/threads", major: parent,
		path: "/channels/" + parent + "/messages/" + message + "/threads",
		body: map[string]any{"name": title, "auto_archive_duration": archiveAfter},
	}, &c)
	switch {
	case err == nil:
		t.a.rooms.put(placeOf(c))
	case codeOf(err) == codeThreadAlreadyMade:
		return false, nil
	case isKind(err, platforms.Transient):
		p, lookErr := t.a.look(ctx, message)
		if lookErr == nil && p.channel != "" {
			return false, nil
		}
		return codeOf(lookErr) == discordgo.ErrCodeUnknownChannel, err
	}
	return err != nil, err
}

// open makes the thread that is expected of a message.
func (t *threads) open(ctx context.Context, thread string, e *expectation) (target, error) {
	absent, err := t.make(ctx, e.parent, thread, e.title)
	failed := platforms.AsSendError(err)
	switch {
	case err == nil:
	case failed.Kind == platforms.RateLimited, failed.Kind == platforms.AuthFailed:
		return target{}, err
	case failed.Kind == platforms.Transient && !absent:
		return target{}, &platforms.SendError{Kind: platforms.Transient, Err: failed.Err}
	case failed.Kind == platforms.Transient:
		t.mu.Lock()
		e.tries++
		tries := e.tries
		t.mu.Unlock()
		if tries < openTries {
			return target{}, platforms.Failure(platforms.Transient, "the thread could not be opened: %w", failed.Err)
		}
		return t.fallBack(ctx, thread, e, "Discord did not open it")
	default:
		return t.fallBack(ctx, thread, e, whyNot(err))
	}
	t.join(ctx, thread)
	t.gone(thread)
	return target{channel: thread}, nil
}

// fallBack decides that the answers of a thread go to the channel.
func (t *threads) fallBack(ctx context.Context, thread string, e *expectation, why string) (target, error) {
	if err := t.inline.Add(ctx, thread); err != nil {
		return target{}, &platforms.SendError{Kind: platforms.Transient, Err: err}
	}
	t.gone(thread)
	t.a.s.Log.Warn().Str("channel", e.parent).Str("cause", why).Msg("a thread could not be opened; the answer goes to the channel")
	return target{channel: e.parent, onto: thread, note: "The thread for this answer could not be opened: " + why + ". It is in the channel instead."}, nil
}

// whyNot says for people why a thread was refused.
func whyNot(err error) string {
	switch codeOf(err) {
	case discordgo.ErrCodeMissingPermissions:
		return "the bot lacks the permission Create Public Threads here"
	case discordgo.ErrCodeMissingAccess:
		return "the bot has no access to this channel"
	case discordgo.ErrCodeUnknownMessage:
		return "the message was deleted"
	case discordgo.ErrCodeMaximumNumberOfActiveThreadsReached, discordgo.ErrCodeMaximumNumberOfActiveAnnouncementThreadsReached:
		return "the server has too many active threads"
	}
	var api *apiError
	if errors.As(err, &api) && api.text != "" {
		return api.text
	}
	return "Discord refused it"
}

// revive finds out what a thread is that Discord does not know: one that was never opened, which may be opened now,
// or one that was deleted, which is ThreadGone.
func (t *threads) revive(ctx context.Context, at platforms.Address) (target, error) {
	parent, thread := string(at.Chat), string(at.Thread)
	if p, ok := t.a.rooms.get(thread); ok && p.thread() {
		t.a.rooms.drop(thread) // it existed, so it was deleted
		return target{}, platforms.Failure(platforms.ThreadGone, "the thread was deleted")
	}
	var m message
	err := t.a.do(ctx, call{
		method: http.MethodGet, route: "/channels/{channel}/messages/{message}", major: parent,
		path: "/channels/" + parent + "/messages/" + thread,
	}, &m)
	switch {
	case err == nil:
		t.expect(thread, parent, titleOf(t.a.textOf(&m, t.a.me()), &m))
		return t.where(ctx, at)
	case statusOf(err) >= 400 && statusOf(err) < 500 && !isKind(err, platforms.RateLimited):
		return target{}, platforms.Failure(platforms.ThreadGone, "the thread does not exist")
	case isKind(err, platforms.RateLimited):
		return target{}, err
	}
	return target{}, &platforms.SendError{Kind: platforms.Transient, Err: platforms.AsSendError(err).Err}
}

// titleOf returns the name of a thread or post: the first line, or a file's name.
func titleOf(text string, m *message) string {
	if title := firstLine(text); title != "" {
		return title
	}
	if m != nil && len(m.Files) > 0 && m.Files[0] != nil {
		return cut(platforms.SafeName(m.Files[0].Filename), titleLimit)
	}
	return "Conversation"
}

// firstLine returns the first line that has more than markup in it, at most titleLimit code points.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.Trim(strings.TrimSpace(line), "#*_`>|~- "))
		if line == "" {
			continue
		}
		if short := cut(line, titleLimit); short != line {
			return cut(line, titleLimit-1) + "…"
		}
		return line
	}
	return ""
}
