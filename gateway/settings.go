package gateway

import (
	"cmp"
	"math/rand/v2"
	"time"

	"herald/gateway/agent"
	"herald/gateway/config"
	"herald/gateway/turn"
	"herald/platforms"
)

// guardrailsOf maps tools.tool_loop_guardrails.
func guardrailsOf(c config.Guardrails) agent.Guardrails {
	var g agent.Guardrails
	if c.Warnings {
		g.Warn = agent.Repeats{SameCall: c.WarnAfter.ExactFailure, SameTool: c.WarnAfter.SameTool, NoProgress: c.WarnAfter.NoProgress}
	}
	if c.HardStop {
		g.Stop = agent.Repeats{SameCall: c.StopAfter.ExactFailure, SameTool: c.StopAfter.SameTool, NoProgress: c.StopAfter.NoProgress}
	}
	return g
}

// perCharacter is how long a person takes for one character, about 400 a minute.
const perCharacter = 15 * time.Millisecond

// pauseOf is the wait before a further part of a long answer; nil for none (human_delay).
func pauseOf(c config.HumanDelay) func(chars int) time.Duration {
	least, most := time.Duration(c.Min)*time.Millisecond, time.Duration(c.Max)*time.Millisecond
	switch c.Mode {
	case "natural":
		return func(chars int) time.Duration { return min(max(time.Duration(chars)*perCharacter, least), most) }
	case "custom":
		return func(int) time.Duration { return least + rand.N(most-least+1) }
	}
	return nil
}

// footerOf is what the line below answers shows.
func footerOf(c config.Footer) []string {
	if !c.Enabled {
		return nil
	}
	return c.Fields
}

// channel is what the operator has set for a chat or thread: the exact place first, then the thread, then the chat, then
// the channel that a thread hangs in.
func (g *Gateway) channel(at platforms.Address, parent platforms.ChatID) turn.Channel {
	if t, ok := g.task(at); ok {
		return turn.Channel{Model: cmp.Or(t.Model, g.cfg().Cron.Model)}
	}
	p := g.platform(at.Platform)
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

// places are the names under which a chat may stand in the configuration, the most exact first.
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
