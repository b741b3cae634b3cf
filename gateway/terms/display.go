package terms

import (
	"herald/gateway/config"
	"herald/gateway/jobs"
	"herald/gateway/router"
	"herald/gateway/turn"
	"herald/gateway/turn/show"
	"herald/platforms"
	"herald/sessions"
)

// Shown resolves what people see on a platform.
func (t *Terms) Shown(at platforms.Address) config.DisplaySettings {
	tier := platforms.TierLow
	if adapter, ok := t.o.Adapters.Adapter(at.AccountOf()); ok {
		tier = adapter.Traits().Tier
	}
	return t.o.Config().DisplayFor(at.Platform, tier)
}

// Display is what a turn shows.
func (t *Terms) Display(at platforms.Address, o sessions.Options) show.Display {
	if jobs.IsRun(at) {
		return show.Display{Live: "off", Progress: "off", ReplyTo: "off"}
	}
	cfg, d, p := t.o.Config(), t.Shown(at), t.platform(at.Platform)
	out := show.Display{
		Streaming: d.Streaming, EditInterval: cfg.Streaming.EditInterval, EditThreshold: cfg.Streaming.Buffer, Cursor: cfg.Streaming.Cursor,
		Typing: p.Typing, Reactions: cfg.Platforms.Reacts(at.Platform), Live: d.LiveStatus, LiveText: p.TypingStatus, Progress: d.ToolProgress,
		PreviewLength: d.PreviewLength, Cleanup: d.Cleanup, Interim: d.Interim,
		ReplyTo: p.ReplyTo, Reasoning: d.ShowReasoning, ReasoningForm: d.ReasoningStyle, Separate: d.ToolGrouping == "separate",
		Memory: d.MemoryNotices,
	}
	if adapter, ok := t.o.Adapters.Adapter(at.AccountOf()); ok {
		if own := adapter.Traits().EditInterval; own > 0 {
			out.EditInterval = own
		}
	}
	// The first words wait as long as one edit would: an answer that is done by then is sent once.
	out.FirstDelay = min(out.EditInterval, cfg.Streaming.EditInterval)
	if d.LongRunning {
		out.Heartbeat = cfg.Agent.NotifyInterval
	}
	if o.Progress != "" && cfg.Display.ToolProgressCommand {
		out.Progress = o.Progress
	}
	return out
}

// Busy is what a message does while a turn runs: the chat's choice, else the configured one.
func (t *Terms) Busy(at platforms.Address, o sessions.Options) turn.Mode {
	if o.Busy != "" {
		return turn.Mode(o.Busy)
	}
	return turn.Mode(t.Shown(at).BusyInputMode)
}

// Acks are the acknowledgements that a chat gets for messages that come while a turn runs.
func (t *Terms) Acks(at platforms.Address) router.Acks {
	d := t.Shown(at)
	return router.Acks{Show: d.BusyAck, Steer: d.BusySteerAck, Detail: d.BusyAckDetail}
}
