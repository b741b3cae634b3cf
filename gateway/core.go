package gateway

import (
	"context"
	"os"
	"path/filepath"

	"herald/gateway/access"
	"herald/gateway/agent"
	"herald/gateway/config"
	"herald/gateway/jobs"
	"herald/gateway/model"
	"herald/gateway/router"
	"herald/gateway/turn"
	"herald/gateway/turn/show"
	"herald/platforms"
	"herald/sessions"
)

// platform returns the shared settings of a platform.
func (g *Gateway) platform(name platforms.Name) config.Platform {
	return g.cfg().Platforms.Shared(name)
}

func (g *Gateway) keyOptions() sessions.KeyOptions {
	cfg := g.cfg()
	return sessions.KeyOptions{GroupPerUser: cfg.GroupSessionsPerUser, ThreadPerUser: cfg.ThreadSessionsPerUser, Rules: g.rules}
}

func (g *Gateway) origin(e platforms.Event) sessions.Origin {
	return sessions.OriginOf(e, g.keyOptions())
}

// dir is where a session's tools start.
func (g *Gateway) dir(s sessions.Session) string {
	if t, ok := g.task(s.Origin.Address); ok && t.Workdir != "" {
		return t.Workdir
	}
	return g.workspace.Dir(string(s.ID))
}

// prompt builds the system prompt of a new session.
func (g *Gateway) prompt(_ context.Context, s sessions.Session, names []string, m model.Info) string {
	in := agent.PromptInput{Session: s, Tools: names, Model: m, Now: g.now(), Instructions: g.cfg().Agent.Instructions,
		Dir: g.workspace.Start(), HidePeople: g.cfg().Privacy.RedactPII}
	if soul, err := os.ReadFile(filepath.Join(g.opt.Paths.Home, "SOUL.md")); err == nil && len(soul) < 64<<10 {
		in.Identity = string(soul)
	}
	in.Scheduled = jobs.IsRun(s.Origin.Address)
	in.Memory, in.User = g.toolbox.Remembered(s.Origin)
	return agent.Prompt(in)
}

// shown resolves what people see on a platform.
func (g *Gateway) shown(at platforms.Address) config.DisplaySettings {
	tier := platforms.TierLow
	if adapter, ok := g.accounts.Adapter(at.AccountOf()); ok {
		tier = adapter.Traits().Tier
	}
	return g.cfg().DisplayFor(at.Platform, tier)
}

// display is what a turn shows.
func (g *Gateway) display(at platforms.Address, o sessions.Options) show.Display {
	if jobs.IsRun(at) {
		return show.Display{Live: "off", Progress: "off", ReplyTo: "off"}
	}
	cfg, d, p := g.cfg(), g.shown(at), g.platform(at.Platform)
	out := show.Display{
		Streaming: d.Streaming, EditInterval: cfg.Streaming.EditInterval, EditThreshold: cfg.Streaming.Buffer, Cursor: cfg.Streaming.Cursor,
		Typing: p.Typing, Reactions: cfg.Platforms.Reacts(at.Platform), Live: d.LiveStatus, LiveText: p.TypingStatus, Progress: d.ToolProgress, PreviewLength: d.PreviewLength, Cleanup: d.Cleanup, Interim: d.Interim,
		ReplyTo: p.ReplyTo, Reasoning: d.ShowReasoning, ReasoningForm: d.ReasoningStyle, Separate: d.ToolGrouping == "separate",
		Memory: d.MemoryNotices,
	}
	if adapter, ok := g.accounts.Adapter(at.AccountOf()); ok {
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

// settings are the parts of the configuration that a turn at a place reads.
func (g *Gateway) settings(at platforms.Address) turn.Settings {
	s := g.chatSettings()
	if jobs.IsRun(at) { // nobody is there to be warned
		s.IdleLimit, s.IdleWarning, s.StallNotice = g.cfg().Cron.Timeout, 0, 0
		s.HideWarnings, s.CompactNotices, s.NudgeEvery = true, false, 0
		if t, _ := g.task(at); t.Reasoning != "" {
			s.Reasoning = t.Reasoning
		}
	}
	return s
}

// chatSettings are those of a chat.
func (g *Gateway) chatSettings() turn.Settings {
	cfg := g.cfg()
	limits := agent.DefaultLimits()
	limits.MaxSteps = cfg.Agent.MaxTurns
	limits.EmptyTries = 1 // the model's own wrapper has asked again already
	limits.Compaction = agent.Compaction{Enabled: cfg.Compression.Enabled, Threshold: cfg.Compression.Threshold,
		SmallThreshold: limits.Compaction.SmallThreshold, SmallWindow: limits.Compaction.SmallWindow,
		ThresholdTokens: cfg.Compression.ThresholdTok, ProtectFirst: cfg.Compression.ProtectFirst,
		ProtectLast: cfg.Compression.ProtectLast, MaxAttempts: cfg.Compression.MaxAttempts, MinTailUser: cfg.Compression.MinTailUser,
		SummaryTimeout: cfg.Compression.ContextTimeout, SummaryTotal: cfg.Compression.ContextTotal}
	if cfg.Compression.TailMode == "lean" {
		limits.Compaction.TargetRatio = cfg.Compression.TargetRatio
	}
	limits.Guardrails = guardrailsOf(cfg.Tools.Guardrails)
	recent := cfg.Gateway.TrustRecentAge
	if !cfg.Gateway.TrustRecent {
		recent = 0
	}
	return turn.Settings{
		Limits: limits, IdleLimit: cfg.Agent.Timeout, IdleWarning: cfg.Agent.TimeoutWarning, StallNotice: cfg.Agent.StallTimeout,
		Reasoning: cfg.Model.Reasoning, MaxAttempts: cfg.Agent.MaxCrashes, MaxInboundLen: int(cfg.Gateway.MaxMessage), History: cfg.Gateway.HistoryLimit,
		MaxMedia: int64(cfg.Gateway.MaxInboundMedia), MediaDir: filepath.Join(g.opt.Paths.Media, "in"),
		Media: show.MediaPolicy{
			Roots: []string{g.opt.Paths.Media}, AllowDirs: cfg.Gateway.MediaAllowDirs, Strict: cfg.Gateway.StrictMedia,
			Recent: recent, Denied: g.workspace.Settings().Protected, Resolve: g.courier.Resolve,
		},
		ShowNarration: !cfg.FilterSilence, HideWarnings: cfg.Display.HideWarnings, CompactNotices: cfg.Compression.Progress,
		NudgeEvery: cfg.Memory.NudgeInterval, MaxRows: cfg.Sessions.MaxResumeMessages, Timestamps: cfg.Gateway.Timestamps,
		Pause: pauseOf(cfg.HumanDelay), Footer: footerOf(cfg.Display.RuntimeFooter),
	}
}

// forget drops what is remembered of a session whose transcript a command has changed.
func (g *Gateway) forget(id sessions.ID) {
	g.runner.Invalidate(id)
	g.toolbox.Forget(id)
}

// busyMode is what a message does while a turn runs: the chat's choice, else the configured one.
func (g *Gateway) busyMode(at platforms.Address, o sessions.Options) turn.Mode {
	if o.Busy != "" {
		return turn.Mode(o.Busy)
	}
	return turn.Mode(g.shown(at).BusyInputMode)
}

// acks are the acknowledgements that a chat gets for messages that come while a turn runs.
func (g *Gateway) acks(at platforms.Address) router.Acks {
	d := g.shown(at)
	return router.Acks{Show: d.BusyAck, Steer: d.BusySteerAck, Detail: d.BusyAckDetail}
}

// admission is the entrance as the router asks it.
type admission struct {
	access.Entrance
	*access.Porter
}

// Decide implements router.Access.
func (a admission) Decide(e platforms.Event) router.Decision {
	d := a.Entrance.Decide(e)
	return router.Decision{Allowed: d.Allowed, Reason: d.Reason, Pair: d.Pairing, Bot: e.Sender.IsBot}
}
