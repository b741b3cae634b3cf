package slack

import (
	"context"
	"strings"
	"time"

	api "github.com/slack-go/slack"

	"herald/platforms"
)

// maxStatus is the most characters of a status line.
const maxStatus = 100

// Typing shows the status line "is thinking..." in a thread. Slack has no sign elsewhere, and none without the scope
// assistant:write: then it does nothing.
func (a *Adapter) Typing(ctx context.Context, at platforms.Address) error {
	return a.Narrate(ctx, at, "is thinking...")
}

// TypingEvery returns 5 s. Slack keeps a status line for two minutes, but takes it off with each message of ours.
func (a *Adapter) TypingEvery() time.Duration { return 5 * time.Second }

// Narrate shows text as the status line of a thread; "" takes it off.
func (a *Adapter) Narrate(ctx context.Context, at platforms.Address, text string) error {
	channel, err := a.channelOf(ctx, at)
	if err != nil {
		return err
	}
	const method = "assistant.threads.setStatus"
	if err := a.gate.open(method, channel); err != nil {
		return err
	}
	if at.Thread == "" || a.off.status.Load() {
		return nil
	}
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxStatus {
		text = string(runes[:maxStatus-1]) + "…"
	}
	err = a.do(ctx, method, channel, func(ctx context.Context) error {
		return a.api.SetAssistantThreadsStatusContext(ctx, api.AssistantThreadsSetStatusParameters{ChannelID: channel,
			ThreadTS: string(at.Thread), Status: text})
	})
	return a.offIfRefused(err, &a.off.status, "the status line is off: the app lacks the scope assistant:write")
}

// offIfRefused remembers that Slack will never take a call; that is no error then.
func (a *Adapter) offIfRefused(err error, off interface{ Store(bool) }, why string) error {
	e := platforms.AsSendError(err)
	if e == nil || e.Kind != platforms.Unsupported {
		return err
	}
	off.Store(true)
	a.s.Log.Warn().Str("account", string(a.account.ID)).Str("cause", e.Err.Error()).Msg(why)
	return nil
}

// suggest shows the configured prompts in a new assistant thread.
func (a *Adapter) suggest(ctx context.Context, channel, thread string) {
	if a.off.prompts.Load() || channel == "" || thread == "" {
		return
	}
	p := api.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: channel, ThreadTS: thread}
	for _, prompt := range a.s.Prompts {
		p.AddPrompt(firstOf(prompt.Title, cut(prompt.Message, maxLabel)), prompt.Message)
	}
	err := a.do(ctx, "assistant.threads.setSuggestedPrompts", channel, func(ctx context.Context) error {
		return a.api.SetAssistantThreadsSuggestedPromptsContext(ctx, p)
	})
	if err = a.offIfRefused(err, &a.off.prompts, "suggested prompts are off: the app lacks the scope assistant:write"); err != nil && ctx.Err() == nil {
		a.s.Log.Warn().Str("account", string(a.account.ID)).Str("cause", err.Error()).Msg("the suggested prompts could not be shown")
	}
}

// title names an assistant thread after its first message. Slack refuses it for any other thread, which is fine.
func (a *Adapter) title(ctx context.Context, at platforms.Address, text string) {
	if a.off.titles.Load() {
		return
	}
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(text); len(runes) > 60 {
		text = string(runes[:59]) + "…"
	}
	err := a.do(ctx, "assistant.threads.setTitle", string(at.Chat), func(ctx context.Context) error {
		return a.api.SetAssistantThreadsTitleContext(ctx, api.AssistantThreadsSetTitleParameters{ChannelID: string(at.Chat),
			ThreadTS: string(at.Thread), Title: text})
	})
	if err = a.offIfRefused(err, &a.off.titles, "titles of assistant threads are off: the app lacks the scope assistant:write"); err != nil {
		a.s.Log.Debug().Str("cause", err.Error()).Msg("a thread could not be named")
	}
}
