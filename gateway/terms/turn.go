package terms

import (
	"math/rand/v2"
	"path/filepath"
	"time"

	"herald/gateway/agent"
	"herald/gateway/config"
	"herald/gateway/jobs"
	"herald/gateway/turn"
	"herald/gateway/turn/show"
	"herald/platforms"
)

// Turn are the parts of the configuration that a turn at a place reads.
func (t *Terms) Turn(at platforms.Address) turn.Settings {
	s := t.Chat()
	if jobs.IsRun(at) { // nobody is there to be warned
		s.IdleLimit, s.IdleWarning, s.StallNotice = t.o.Config().Cron.Timeout, 0, 0
		s.HideWarnings, s.CompactNotices, s.NudgeEvery = true, false, 0
		if task, _ := t.Task(at); task.Reasoning != "" {
			s.Reasoning = task.Reasoning
		}
	}
	return s
}

// Chat are those of a chat.
func (t *Terms) Chat() turn.Settings {
	cfg := t.o.Config()
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
		Reasoning: cfg.Model.Reasoning, MaxAttempts: cfg.Agent.MaxCrashes, MaxInboundLen: int(cfg.Gateway.MaxMessage),
		History:  cfg.Gateway.HistoryLimit,
		MaxMedia: int64(cfg.Gateway.MaxInboundMedia), MediaDir: filepath.Join(t.o.Paths.Media, "in"),
		Media: show.MediaPolicy{
			Roots: []string{t.o.Paths.Media}, AllowDirs: cfg.Gateway.MediaAllowDirs, Strict: cfg.Gateway.StrictMedia,
			Recent: recent, Denied: t.o.Workspace.Settings().Protected, Resolve: t.o.Resolve,
		},
		ShowNarration: !cfg.FilterSilence, HideWarnings: cfg.Display.HideWarnings, CompactNotices: cfg.Compression.Progress,
		NudgeEvery: cfg.Memory.NudgeInterval, MaxRows: cfg.Sessions.MaxResumeMessages, Timestamps: cfg.Gateway.Timestamps,
		Pause: pauseOf(cfg.HumanDelay), Footer: footerOf(cfg.Display.RuntimeFooter),
	}
}

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
