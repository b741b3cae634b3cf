package terms

import (
	"cmp"

	"herald/gateway/turn"
	"herald/platforms"
)

// Channel is what the operator has set for a chat or thread: the exact place first, then the thread, then the chat, then
// the channel that a thread hangs in.
func (t *Terms) Channel(at platforms.Address, parent platforms.ChatID) turn.Channel {
	if task, ok := t.Task(at); ok {
		return turn.Channel{Model: cmp.Or(task.Model, t.o.Config().Cron.Model)}
	}
	p := t.platform(at.Platform)
	var out turn.Channel
	for _, id := range places(at, parent) {
		if o, ok := p.ChannelOverrides[id]; ok {
			out.Model, out.System = modelName(o), o.SystemPrompt
			break
		}
	}
	for _, id := range places(at, parent) {
		if text, ok := p.ChannelPrompts[id]; ok {
			out.Prompt = text
			break
		}
	}
	return out
}

// places are the names under which a chat may be in the configuration, the most exact first.
func places(at platforms.Address, parent platforms.ChatID) []string {
	out := []string{string(at.Chat)}
	if at.Thread != "" {
		out = []string{string(at.Chat) + ":" + string(at.Thread), string(at.Thread), string(at.Chat)}
	}
	if parent != "" && parent != at.Chat {
		out = append(out, string(parent))
	}
	return out
}

// modelName is an override as /model would write it.
func modelName(o platforms.ChatOverride) string {
	if o.Provider == "" || o.Model == "" {
		return o.Model
	}
	return o.Provider + "/" + o.Model
}
