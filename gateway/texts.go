package gateway

import (
	"strings"
	"time"

	"herald/gateway/command"
	"herald/gateway/model"
	"herald/gateway/turn"
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

func (t *texts) AskOther(at platforms.Address) string { return t.say(at, "clarify.choose") }

func (t *texts) AskAnswered(at platforms.Address, question, answer string) string {
	return question + "\n\n" + t.say(at, "clarify.answered", locales.Str("text", "**"+format.EscapeMarkdown(answer)+"**"))
}

// Approval implements turn.Texts.
func (t *texts) Approval(at platforms.Address, a turn.Approval, waiting int, typed bool) (string, map[turn.Choice]string) {
	p := t.printer(at)
	lines := []string{"⚠️ **" + p.T("approval.title") + "**", format.Fence("", a.Preview)}
	for _, kind := range a.Kinds {
		lines = append(lines, "• "+p.T(command.WhyKey(kind)))
	}
	if a.Judged {
		lines = append(lines, p.T("approval.judged"))
	}
	lines = append(lines, p.T("approval.timeout", locales.Dur("time", a.Until.Sub(a.Asked))))
	if waiting > 1 {
		lines = append(lines, p.N("approval.waiting", waiting))
	}
	labels := map[turn.Choice]string{}
	var commands []string
	for _, c := range a.Choices {
		labels[c] = p.T("approval.choice." + string(c))
		word := p.Command("approve")
		switch c {
		case turn.ChoiceDeny:
			word = p.Command("deny")
		case turn.ChoiceSession, turn.ChoiceAlways:
			word += " " + string(c)
		}
		commands = append(commands, format.Code(word))
	}
	if typed {
		lines = append(lines, p.T("approval.how", locales.Str("commands", strings.Join(commands, ", "))))
	}
	return strings.Join(lines, "\n"), labels
}

// ApprovalEnded implements turn.Texts.
func (t *texts) ApprovalEnded(at platforms.Address, a turn.Approval) string {
	p := t.printer(at)
	text := p.T("approval.ended."+string(a.Choice), locales.Str("name", format.EscapeMarkdown(a.By)))
	if a.Reason != "" {
		text += "\n" + p.T("approval.reason", locales.Str("reason", format.EscapeMarkdown(a.Reason)))
	}
	return format.Fence("", a.Preview) + "\n" + text
}
