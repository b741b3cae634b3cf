package telegram

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"herald/platforms"
	"herald/platforms/format"
	"herald/platforms/wire"
)

// Send delivers one message or one edit. Errors are *platforms.SendError.
//
// A chunk whose markup Telegram refuses is sent once more as Text.Plain. An interim edit that is over the
// rate limit is skipped with RateLimited; everything else waits its turn within ctx. When a message needs
// several requests and a later one fails, the receipt's notes say what is missing, because the first part
// is visible already.
func (a *Adapter) Send(ctx context.Context, out platforms.Outgoing) (platforms.Receipt, error) {
	chat, thread, err := a.chatOf(out.Address)
	if err != nil {
		return platforms.Receipt{}, err
	}
	o := outbound{a: a, out: out, chat: chat, thread: thread, Parts: wire.Parts{Platform: "Telegram", Log: &a.s.Log, Chat: string(out.Address.Chat)}}
	if out.ReplyTo != "" {
		if o.replyTo, err = messageID(out.ReplyTo); err != nil {
			return platforms.Receipt{}, err
		}
	}
	if err := wire.CheckButtons(out.Buttons); err != nil {
		return platforms.Receipt{}, err
	}
	if err := o.openTopic(ctx); err != nil {
		return platforms.Receipt{}, err
	}
	switch {
	case out.Private != "" && chat < 0: // a direct chat is private by itself
		err = o.alert(ctx)
	case out.Edit != "":
		err = o.edit(ctx)
	case len(out.Attachments) > 0:
		err = o.sendFiles(ctx)
	default:
		err = o.sendText(ctx, true)
	}
	if err != nil {
		return platforms.Receipt{Thread: o.Receipt.Thread}, err
	}
	return o.Receipt, nil
}

// outbound is one Outgoing on its way.
type outbound struct {
	a       *Adapter
	out     platforms.Outgoing
	chat    int64
	thread  int
	replyTo int
	wire.Parts
}

// sendText sends the text as a message of its own, with the buttons when withButtons is set.
func (o *outbound) sendText(ctx context.Context, withButtons bool) error {
	if o.out.Text.Body == "" && o.out.Text.Plain == "" {
		return platforms.Failure(platforms.BadRequest, "the message has neither text nor attachments")
	}
	return o.withPlain(func(body string, mode models.ParseMode) error {
		return o.do(ctx, false, func(ctx context.Context) error {
			p := &bot.SendMessageParams{
				ChatID: o.chat, MessageThreadID: o.thread, Text: body, ParseMode: mode,
				LinkPreviewOptions: o.a.preview(), DisableNotification: o.out.Silent, ReplyParameters: o.reply(),
			}
			if withButtons && len(o.out.Buttons) > 0 {
				p.ReplyMarkup = keyboardOf(o.out.Buttons)
			}
			m, err := o.a.api.SendMessage(ctx, p)
			if err == nil {
				o.sent(m)
			}
			return err
		})
	})
}

// alert shows the text to nobody but the person who pressed a button, cut to 200 characters: Telegram has
// no other private answer in a group. A press that Telegram has forgotten is Unsupported.
func (o *outbound) alert(ctx context.Context) error {
	text := o.out.Text.AsPlain()
	if short := cut(text, answerLimit); short != text {
		text = cut(text, answerLimit-1) + "…"
	}
	err := o.a.act(ctx, o.chat, func(ctx context.Context) error {
		_, err := o.a.api.AnswerCallbackQuery(ctx, &bot.AnswerCallbackQueryParams{CallbackQueryID: o.out.Private, Text: text, ShowAlert: true})
		return err
	})
	if says(err, "query is too old") {
		return platforms.Failure(platforms.Unsupported, "the button was pressed too long ago for a private answer")
	}
	return err
}

// edit replaces a message's text and buttons.
func (o *outbound) edit(ctx context.Context) error {
	id, err := messageID(o.out.Edit)
	if err != nil {
		return err
	}
	o.Receipt.Message = o.out.Edit
	for _, f := range o.out.Attachments {
		o.Note(f, "an edit can't add files")
	}
	if o.out.Text.Body == "" && o.out.Text.Plain == "" {
		return o.do(ctx, o.out.Interim, func(ctx context.Context) error {
			_, err := o.a.api.EditMessageReplyMarkup(ctx, &bot.EditMessageReplyMarkupParams{ChatID: o.chat, MessageID: id,
				ReplyMarkup: keyboardOf(o.out.Buttons)})
			return err
		})
	}
	err = o.withPlain(func(body string, mode models.ParseMode) error {
		return o.do(ctx, o.out.Interim, func(ctx context.Context) error {
			_, err := o.a.api.EditMessageText(ctx, &bot.EditMessageTextParams{
				ChatID: o.chat, MessageID: id, Text: body, ParseMode: mode,
				LinkPreviewOptions: o.a.preview(), ReplyMarkup: keyboardOf(o.out.Buttons),
			})
			return err
		})
	})
	if says(err, "there is no text in the message to edit") { // it is a file with a caption
		err = o.withPlain(func(body string, mode models.ParseMode) error {
			return o.do(ctx, o.out.Interim, func(ctx context.Context) error {
				_, err := o.a.api.EditMessageCaption(ctx, &bot.EditMessageCaptionParams{
					ChatID: o.chat, MessageID: id, Caption: body, ParseMode: mode, ReplyMarkup: keyboardOf(o.out.Buttons),
				})
				return err
			})
		})
	}
	return err
}

// withPlain tries the chunk with its markup, and exactly once more without when Telegram can't parse it.
func (o *outbound) withPlain(send func(body string, mode models.ParseMode) error) error {
	if o.out.Text.Body == "" {
		return send(o.out.Text.Plain, "")
	}
	err := send(o.out.Text.Body, models.ParseModeHTML)
	if !says(err, "can't parse entities") {
		return err
	}
	o.a.s.Log.Warn().Str("chat", string(o.out.Address.Chat)).Str("cause", err.Error()).Msg("Telegram can't parse the markup; the chunk goes out as plain text")
	return send(o.out.Text.AsPlain(), "")
}

// do makes one request that the user sees: it passes the gate, follows a group that became a supergroup,
// and turns the error into what is known. "Not modified" is success.
func (o *outbound) do(ctx context.Context, skip bool, request func(context.Context) error) error {
	a := o.a
	if err := a.gate.Pass(ctx, skip, gateKey(o.chat), wire.Account); err != nil {
		return err
	}
	for moved := false; ; moved = true {
		call, callCtx, cancel := newCall(ctx, 0)
		err := request(callCtx)
		cancel()
		switch {
		case err == nil, call.says("message is not modified"):
			return nil
		case call.refusal().Parameters.MigrateTo != 0 && !moved:
			to := call.refusal().Parameters.MigrateTo
			a.follow(o.chat, to)
			o.Receipt.Notes = append(o.Receipt.Notes, fmt.Sprintf("The group %d became a supergroup: its chat id is now %d.", o.chat, to))
			o.chat = to
		default:
			e := a.outcome(call, err)
			if e.Kind == platforms.RateLimited {
				a.gate.Close(e.RetryAfter, gateKey(o.chat))
			}
			return e
		}
	}
}

func (o *outbound) sent(m *models.Message) {
	o.a.own.Put(ownMessage{o.chat, m.ID}, o.thread)
	o.Sent(platforms.MessageID(strconv.Itoa(m.ID)))
}

// reply quotes the message to answer, on the first part only.
func (o *outbound) reply() *models.ReplyParameters {
	if o.replyTo == 0 || o.Some {
		return nil
	}
	return &models.ReplyParameters{MessageID: o.replyTo, AllowSendingWithoutReply: true}
}

func (a *Adapter) preview() *models.LinkPreviewOptions {
	if !a.s.DisableLinkPreviews {
		return nil
	}
	return &models.LinkPreviewOptions{IsDisabled: bot.True()}
}

// follow remembers that a group has a new id.
func (a *Adapter) follow(from, to int64) {
	a.movedMu.Lock()
	a.moved[from] = to
	a.movedMu.Unlock()
	a.s.Log.Warn().Int64("from", from).Int64("to", to).Msg("a group became a supergroup: settings that name its old id must be changed")
}

// keyboard is an inline keyboard. The library's own type writes a copy_text field into every button.
type keyboard struct {
	Rows [][]keyboardButton `json:"inline_keyboard"`
}

type keyboardButton struct {
	Text  string `json:"text"`
	Data  string `json:"callback_data"`
	Style string `json:"style,omitempty"`
}

// keyboardOf returns the rows as a keyboard; none make an empty one, which takes the buttons of an edited
// message away.
func keyboardOf(rows [][]platforms.Button) *keyboard {
	k := &keyboard{Rows: make([][]keyboardButton, 0, len(rows))}
	for _, row := range rows {
		if len(row) == 0 {
			continue
		}
		line := make([]keyboardButton, len(row))
		for i, b := range row {
			line[i] = keyboardButton{Text: b.Label, Data: b.Data, Style: b.Style}
		}
		k.Rows = append(k.Rows, line)
	}
	return k
}

// says reports whether err is a refusal whose text holds words.
func says(err error, words string) bool {
	var e *platforms.SendError
	return errors.As(err, &e) && e.Certainty == platforms.NotSent && strings.Contains(strings.ToLower(e.Err.Error()), words)
}

// units counts text as Telegram does.
func units(text string) int { return format.Length(text, platforms.UTF16) }
