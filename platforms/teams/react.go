package teams

import (
	"context"
	"net/http"
	"net/url"

	"herald/platforms"
)

// reactionIDs are the names of emoji in Teams, as far as a bot has a use for them.
// https://learn.microsoft.com/microsoftteams/platform/agents-in-teams/teams-reactions-reference
var reactionIDs = map[string]string{
	"👍": "like", "❤️": "heart", "❤": "heart", "😆": "laugh", "😮": "surprised", "😢": "sad", "😠": "angry", "🚀": "launch",
	"👀": "1f440_eyes", "✅": "2705_whiteheavycheckmark", "❌": "274c_crossmark", "📌": "1f4cc_pushpin",
}

// reactionsKept is how many messages are remembered with our reaction on them, because Teams takes each off by its name.
const reactionsKept = 1000

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
		return platforms.Failure(platforms.BadRequest, "message %q is no Teams message id", id)
	case emoji != "" && !known:
		return platforms.Failure(platforms.Unsupported, "%q is no reaction of Teams", emoji)
	}
	name := ownName(t.chat, string(id))
	now, _ := a.reactions.Get(name)
	if now == want {
		return nil
	}
	if now != "" {
		if err := a.change(ctx, t, http.MethodDelete, string(id), now); err != nil {
			return err
		}
		a.reactions.Delete(name)
	}
	if want == "" {
		return nil
	}
	if err := a.change(ctx, t, http.MethodPut, string(id), want); err != nil {
		return err
	}
	a.reactions.Put(name, want)
	return nil
}

// change makes one change of a reaction. A window that Teams asks for holds for all reactions, and for the chat.
func (a *Adapter) change(ctx context.Context, t target, method, id, reaction string) error {
	if err := a.gate.Pass(ctx, false, topicReactions); err != nil {
		return err
	}
	o := outbound{a: a, target: t}
	c, err := o.act(ctx, request{method: method, url: t.activities(id) + "/reactions/" + url.PathEscape(reaction)})
	if e := platforms.AsSendError(err); e != nil && e.Kind == platforms.RateLimited {
		a.gate.Close(e.RetryAfter, topicReactions)
	}
	return o.gone(c, err)
}
