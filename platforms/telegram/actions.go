package telegram

import (
	"context"
	"regexp"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"herald/platforms"
)

// Delete removes a message of ours. One that is gone already is success.
func (a *Adapter) Delete(ctx context.Context, at platforms.Address, id platforms.MessageID) error {
	chat, _, err := a.chatOf(at)
	if err != nil {
		return err
	}
	message, err := messageID(id)
	if err != nil {
		return err
	}
	err = a.act(ctx, chat, func(ctx context.Context) error {
		_, err := a.api.DeleteMessage(ctx, &bot.DeleteMessageParams{ChatID: chat, MessageID: message})
		return err
	})
	if says(err, "message to delete not found") {
		return nil
	}
	return err
}

// Typing shows "typing" for five seconds.
func (a *Adapter) Typing(ctx context.Context, at platforms.Address) error {
	chat, thread, err := a.chatOf(at)
	if err != nil {
		return err
	}
	return a.act(ctx, chat, func(ctx context.Context) error {
		_, err := a.api.SendChatAction(ctx, &bot.SendChatActionParams{ChatID: chat, MessageThreadID: thread, Action: models.ChatActionTyping})
		return err
	})
}

// TypingEvery returns 4 s: Telegram shows an action for at most 5 s.
func (a *Adapter) TypingEvery() time.Duration { return 4 * time.Second }

// React puts emoji on a message in place of our earlier one, or takes it off when emoji is "". It returns
// Unsupported while Options.Reactions is off.
func (a *Adapter) React(ctx context.Context, at platforms.Address, id platforms.MessageID, emoji string) error {
	if !a.s.Reactions {
		return platforms.Failure(platforms.Unsupported, "reactions are switched off (platforms.telegram.reactions)")
	}
	chat, _, err := a.chatOf(at)
	if err != nil {
		return err
	}
	message, err := messageID(id)
	if err != nil {
		return err
	}
	p := &bot.SetMessageReactionParams{ChatID: chat, MessageID: message}
	if emoji = allowed(emoji); emoji != "" {
		p.Reaction = []models.ReactionType{{Type: models.ReactionTypeTypeEmoji, ReactionTypeEmoji: &models.ReactionTypeEmoji{Emoji: emoji}}}
	}
	return a.act(ctx, chat, func(ctx context.Context) error {
		_, err := a.api.SetMessageReaction(ctx, p)
		return err
	})
}

// allowed puts emoji that bots may use in place of those that they may not.
func allowed(emoji string) string {
	switch emoji {
	case "✅":
		return "👍"
	case "❌":
		return "👎"
	}
	return emoji
}

// answerLimit is the most characters of a notification to a presser.
const answerLimit = 200

// AnswerClick ends the waiting sign on the pressed button and shows text, at most 200 characters, to the
// presser. A press that Telegram has forgotten is success.
func (a *Adapter) AnswerClick(ctx context.Context, at platforms.Address, click platforms.Click, text string) error {
	chat, _, err := a.chatOf(at)
	if err != nil {
		return err
	}
	err = a.act(ctx, chat, func(ctx context.Context) error {
		_, err := a.api.AnswerCallbackQuery(ctx, &bot.AnswerCallbackQueryParams{CallbackQueryID: click.Reply, Text: cut(text, answerLimit)})
		return err
	})
	if says(err, "query is too old") {
		return nil
	}
	return err
}

var commandName = regexp.MustCompile(`^[a-z0-9_]{1,32}$`)

// descriptionLimit is the most characters of a command's description.
const descriptionLimit = 256

// SetCommands shows the first Options.MaxCommands commands in the menu. A name that Telegram would refuse is
// an error, and nothing is changed then.
func (a *Adapter) SetCommands(ctx context.Context, commands []platforms.CommandInfo) error {
	menu := make([]models.BotCommand, 0, min(len(commands), a.s.Options.MaxCommands))
	for _, c := range commands {
		if !commandName.MatchString(c.Name) {
			return platforms.Failure(platforms.BadRequest, "command %q: want 1 to 32 of a-z 0-9 _", c.Name)
		}
		if len(menu) == a.s.Options.MaxCommands {
			a.s.Log.Info().Int("shown", len(menu)).Int("all", len(commands)).Msg("the command menu shows only the first commands (max_commands)")
			break
		}
		description := c.Description
		if c.Args != "" {
			description += " " + c.Args
		}
		if description == "" {
			description = c.Name
		}
		menu = append(menu, models.BotCommand{Command: c.Name, Description: cut(description, descriptionLimit)})
	}
	return a.act(ctx, 0, func(ctx context.Context) error {
		_, err := a.api.SetMyCommands(ctx, &bot.SetMyCommandsParams{Commands: menu})
		return err
	})
}

// act makes one request beside the messages. It takes no turn in the rate gate, but inside a window that Telegram asked to wait
// it returns RateLimited without a request.
func (a *Adapter) act(ctx context.Context, chat int64, request func(context.Context) error) error {
	key := gateKey(chat)
	if err := a.gate.Check(key); err != nil {
		return err
	}
	call, ctx, cancel := newCall(ctx, 0)
	defer cancel()
	err := request(ctx)
	if err == nil {
		return nil
	}
	e := a.outcome(call, err)
	if e.Kind == platforms.RateLimited {
		a.gate.Close(e.RetryAfter, key)
	}
	return e
}
