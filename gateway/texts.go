package gateway

import (
	"time"

	"herald/gateway/model"
	"herald/locales"
	"herald/platforms"
	"herald/platforms/format"
)

// texts says what the core tells people, in the profile's language.
type texts struct {
	g        *Gateway
	catalogs *locales.Catalogs
}

// printer speaks the profile's language and writes commands as they are typed at a place.
func (t *texts) printer(at platforms.Address) *locales.Printer {
	p := t.catalogs.Choose(t.g.cfg().Display.Language)
	if t.g.accounts == nil {
		return p
	}
	adapter, ok := t.g.accounts.Adapter(at.AccountOf())
	if !ok {
		return p
	}
	return p.Commands(adapter.Traits().PrefixIn(at))
}

func (t *texts) say(at platforms.Address, key string, args ...locales.Arg) string {
	return t.printer(at).T(key, args...)
}

// Failed implements turn.Texts.
func (t *texts) Failed(at platforms.Address, kind model.Kind, retryAfter time.Duration) string {
	switch kind {
	case model.Auth:
		return "⚠️ " + t.say(at, "error.auth")
	case model.Policy:
		return "⚠️ " + t.say(at, "error.policy")
	case model.RateLimit:
		if retryAfter > 0 {
			return "⚠️ " + t.say(at, "error.rate_limit_wait", locales.Dur("time", retryAfter))
		}
		return "⚠️ " + t.say(at, "error.rate_limit")
	case model.Down, model.Overloaded:
		return "⚠️ " + t.say(at, "error.down")
	case model.ContextLength:
		return "⚠️ " + t.say(at, "error.context_length")
	case model.Invalid:
		return "⚠️ " + t.say(at, "error.garbage")
	case model.NotFound:
		return "⚠️ " + t.say(at, "error.not_found")
	}
	return "⚠️ " + t.say(at, "error.generic")
}

// Stopped and the next ones implement turn.Texts.
func (t *texts) Stopped(at platforms.Address) string { return "_" + t.say(at, "turn.stopped") + "_" }

func (t *texts) Parked(at platforms.Address, attempts int) string {
	return "⚠️ " + t.printer(at).N("restart.parked", attempts)
}

func (t *texts) TimedOut(at platforms.Address, limit time.Duration) string {
	return "⚠️ " + t.say(at, "turn.timeout", locales.Dur("time", limit))
}

func (t *texts) SlowWarning(at platforms.Address, idle time.Duration) string {
	return "⏳ " + t.say(at, "turn.quiet", locales.Dur("time", idle), locales.Dur("limit", t.g.cfg().Agent.Timeout))
}

func (t *texts) Stalled(at platforms.Address, idle time.Duration) string {
	return "⏳ " + t.say(at, "turn.stalled", locales.Dur("time", idle))
}

// Doing names what the well-known tools do; other ones are named themselves.
func (t *texts) Doing(at platforms.Address, tool, what string) string {
	p := t.printer(at)
	key, args := "doing."+tool, []locales.Arg{locales.Str("what", what), locales.Str("tool", tool)}
	if !p.Has(key) {
		key = "doing.any"
	}
	if what != "" && p.Has(key+".with") {
		key += ".with"
	}
	return p.T(key, args...)
}

func (t *texts) Working(at platforms.Address, since time.Duration, what string, step int) string {
	if what == "" {
		return "⏳ " + t.say(at, "turn.working", locales.Dur("time", since))
	}
	return "⏳ " + t.say(at, "turn.working_detail", locales.Dur("time", since), locales.Int("step", step), locales.Str("tool", format.Code(what)))
}

func (t *texts) Silent(at platforms.Address) string { return t.say(at, "turn.silent") }

func (t *texts) Exhausted(at platforms.Address, steps int) string {
	return "⚠️ " + t.printer(at).N("turn.max_steps", steps)
}

func (t *texts) AttachmentLost(at platforms.Address, name, reason string) string {
	return "⚠️ " + t.say(at, "attachment.download_failed", locales.Str("name", format.EscapeMarkdown(name)), locales.Str("reason", format.EscapeMarkdown(reason)))
}

func (t *texts) MediaRefused(at platforms.Address, name, reason string) string {
	return "⚠️ " + t.say(at, "attachment.upload_failed", locales.Str("name", format.EscapeMarkdown(name)), locales.Str("reason", format.EscapeMarkdown(reason)))
}

func (t *texts) Compacting(at platforms.Address) string {
	return "🗜 " + t.say(at, "turn.compacting")
}

func (t *texts) Compacted(at platforms.Address, before, after int) string {
	return "🗜 " + t.say(at, "turn.compacted", locales.Int("before", before), locales.Int("after", after))
}

func (t *texts) Remembered(at platforms.Address, text string) string {
	return "💾 " + t.say(at, "progress.memory", locales.Str("text", text))
}

func (t *texts) Looped(at platforms.Address, tool string) string {
	return "⚠️ " + t.say(at, "turn.loop", locales.Str("tool", format.Code(tool)))
}

func (t *texts) Thought(at platforms.Address) string { return t.say(at, "progress.thinking") }
