package teams

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"golang.org/x/time/rate"

	"herald/platforms"
)

// reactionIDs are the names of emoji in Teams, as far as a bot has a use for them.
// https://learn.microsoft.com/microsoftteams/platform/agents-in-teams/teams-reactions-reference
var reactionIDs = map[string]string{
	"👍": "like", "❤️": "heart", "❤": "heart", "😆": "laugh", "😮": "surprised", "😢": "sad", "😠": "angry", "🚀": "launch",
	"👀": "1f440_eyes", "✅": "2705_whiteheavycheckmark", "❌": "274c_crossmark", "📌": "1f4cc_pushpin",
}

const (
	// Teams takes two changes of reactions in a second of a bot, over all conversations.
	reactRate, reactBurst = rate.Limit(1.5), 1
	// reactionsKept is how many messages are remembered with our reaction on them.
	reactionsKept = 1000

	topicReactions = "reactions"
)

// reactions remembers what we put on messages, because Teams takes each reaction off by its name.
type reactions struct {
	pace *rate.Limiter

	mu    sync.Mutex
	on    map[string]string // by ownName
	order []string
}

func (r *reactions) get(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.on[name]
}

func (r *reactions) set(name, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.on[name]; !known {
		if len(r.order) >= reactionsKept {
			delete(r.on, r.order[0])
			r.order = r.order[1:]
		}
		r.order = append(r.order, name)
	}
	r.on[name] = id
}

// React puts emoji on a message in place of our earlier one, or takes it off when emoji is "". One that Teams has no name
// for is Unsupported. Of a reaction that an earlier process has put there nothing is known.
func (a *Adapter) React(ctx context.Context, at platforms.Address, id platforms.MessageID, emoji string) error {
	t, err := a.target(ctx, at)
	if err != nil {
		return err
	}
	want, known := reactionIDs[emoji]
	switch {
	case !messagePattern.MatchString(string(id)):
		return badRequest("message %q is no Teams message id", id)
	case emoji != "" && !known:
		return &platforms.SendError{Kind: platforms.Unsupported, Err: fmt.Errorf("%q is no reaction of Teams", emoji)}
	}
	name := ownName(t.chat, string(id))
	now := a.reactions.get(name)
	if now == want {
		return nil
	}
	if now != "" {
		if err := a.change(ctx, t, http.MethodDelete, string(id), now); err != nil {
			return err
		}
		a.reactions.set(name, "")
	}
	if want == "" {
		return nil
	}
	if err := a.change(ctx, t, http.MethodPut, string(id), want); err != nil {
		return err
	}
	a.reactions.set(name, want)
	return nil
}

// change makes one change of a reaction. A window that Teams asks for holds for all reactions, and for the chat.
func (a *Adapter) change(ctx context.Context, t target, method, id, reaction string) error {
	if err := a.gate.open(topicReactions); err != nil {
		return err
	}
	if a.s.limited {
		if err := a.reactions.pace.Wait(ctx); err != nil {
			return tooSoon(streamPace, errPace)
		}
	}
	o := outbound{a: a, target: t}
	c, err := o.act(ctx, request{method: method, url: t.activities(id) + "/reactions/" + url.PathEscape(reaction)})
	if e := platforms.AsSendError(err); e != nil && e.Kind == platforms.RateLimited {
		a.gate.close(topicReactions, e.RetryAfter)
	}
	return o.gone(c, err)
}
