package web

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"herald/platforms"
)

// Send appends one message to the chat's log and shows it in every open tab, or replaces one that is
// there. It is idempotent by nonce: a repeated Send returns the first message's id (P4). Files are copied
// into the media folder; one that can't be is named in Receipt.Notes, and when nothing else is left of
// the message that is an error. A write of the log that failed is Unknown: a repetition with the
// nonce finds out and can't double.
func (a *Adapter) Send(ctx context.Context, out platforms.Outgoing) (platforms.Receipt, error) {
	if err := checkAddress(out.Address); err != nil {
		return platforms.Receipt{}, err
	}
	if out.Edit != "" {
		return a.edit(ctx, out)
	}
	return a.add(ctx, out)
}

func (a *Adapter) add(ctx context.Context, out platforms.Outgoing) (platforms.Receipt, error) {
	files, notes, err := a.takeFiles(ctx, out)
	if err != nil {
		return platforms.Receipt{}, a.sendError(err, platforms.NotSent)
	}
	e := a.compose(out, files)
	if e.Text == "" && len(e.Files) == 0 && len(e.Buttons) == 0 {
		cause := errors.New("the message is empty")
		if len(notes) > 0 {
			cause = fmt.Errorf("nothing of the message could be sent: %s", notes[0])
		}
		return platforms.Receipt{Notes: notes}, &platforms.SendError{
			Kind: platforms.BadRequest, Certainty: platforms.NotSent, Err: cause,
		}
	}

	chat := out.Address.Chat
	unlock := a.lockChat(chat)
	defer unlock()
	if e.Reply, err = a.quoteOf(ctx, chat, out.ReplyTo); err != nil {
		return platforms.Receipt{}, a.sendError(err, platforms.NotSent)
	}
	nonce := ""
	if out.Nonce != "" {
		nonce = "agent/" + out.Nonce
	}
	if e.Title, err = a.titleOf(ctx, chat, e); err != nil {
		return platforms.Receipt{}, a.sendError(err, platforms.NotSent)
	}
	seq, e, err := a.append(ctx, chat, nonce, e)
	if err != nil {
		return platforms.Receipt{}, a.sendError(err, platforms.Unknown)
	}
	a.announce(chat, seq, e)
	return platforms.Receipt{Message: messageID(seq), Notes: notes}, nil
}

// compose makes the log's entry of an outgoing message.
func (a *Adapter) compose(out platforms.Outgoing, files []file) entry {
	text := out.Text.Markdown
	if text == "" {
		text = out.Text.AsBody()
	}
	return entry{
		From: fromAgent, Text: text, At: a.opts.Now().UTC(),
		Interim: out.Interim, Progress: out.Progress, Silent: out.Silent,
		Files: files, Buttons: out.Buttons,
	}
}

// append writes a new entry and returns what the log then holds: with a nonce that it has seen, the entry
// of then as it is now. The chat's lock is held.
func (a *Adapter) append(ctx context.Context, chat platforms.ChatID, nonce string, e entry) (int64, entry, error) {
	payload, err := e.encode()
	if err != nil {
		return 0, entry{}, err
	}
	seq, err := a.opts.Log.Append(ctx, chat, nonce, payload)
	if err != nil {
		return 0, entry{}, err
	}
	a.keepTitle(chat, e.Title)
	if nonce == "" {
		return seq, e, nil
	}
	stored, found, err := a.load(ctx, chat, seq)
	if err != nil {
		return 0, entry{}, err
	}
	if !found { // it was sent before and is deleted since
		return seq, e, errGone
	}
	return seq, stored, nil
}

// errGone says that a nonce names a message that was deleted.
var errGone = errors.New("the message was deleted")

func (a *Adapter) edit(ctx context.Context, out platforms.Outgoing) (platforms.Receipt, error) {
	seq, err := parseSeq(out.Edit)
	if err != nil {
		return platforms.Receipt{}, a.sendError(err, platforms.NotSent)
	}
	files, notes, err := a.takeFiles(ctx, out)
	if err != nil {
		return platforms.Receipt{}, a.sendError(err, platforms.NotSent)
	}
	chat := out.Address.Chat
	unlock := a.lockChat(chat)
	defer unlock()
	old, found, err := a.load(ctx, chat, seq)
	switch {
	case err != nil:
		return platforms.Receipt{}, a.sendError(err, platforms.NotSent)
	case !found:
		return platforms.Receipt{}, gone(seq)
	case old.From != fromAgent:
		return platforms.Receipt{}, &platforms.SendError{
			Kind: platforms.BadRequest, Certainty: platforms.NotSent,
			Err: fmt.Errorf("message %d is not ours to edit", seq),
		}
	}
	e := a.compose(out, old.Files)
	e.At, e.Title, e.Reply, e.Silent = old.At, old.Title, old.Reply, old.Silent
	for _, f := range files {
		if !hasFile(e.Files, f.ID) {
			e.Files = append(e.Files[:len(e.Files):len(e.Files)], f)
		}
	}
	e.Edited = old.Edited
	if !reflect.DeepEqual(normal(e), normal(old)) {
		if !old.Interim { // completing a preview is no edit to a reader
			e.Edited = a.opts.Now().UTC()
		}
		payload, err := e.encode()
		if err != nil {
			return platforms.Receipt{}, a.sendError(err, platforms.NotSent)
		}
		if err := a.opts.Log.Update(ctx, chat, seq, payload); err != nil {
			if errors.Is(err, platforms.ErrNoEntry) {
				return platforms.Receipt{}, gone(seq)
			}
			return platforms.Receipt{}, a.sendError(err, platforms.Unknown)
		}
		a.announce(chat, seq, e)
	}
	return platforms.Receipt{Message: messageID(seq), Notes: notes}, nil
}

// normal returns an entry whose empty lists are nil, for comparing.
func normal(e entry) entry {
	if len(e.Files) == 0 {
		e.Files = nil
	}
	if len(e.Buttons) == 0 {
		e.Buttons = nil
	}
	return e
}

func hasFile(files []file, id string) bool {
	for _, f := range files {
		if f.ID == id {
			return true
		}
	}
	return false
}

// quoteOf makes the quote of the message that an answer replies to. A message that is gone quotes nothing.
func (a *Adapter) quoteOf(ctx context.Context, chat platforms.ChatID, id platforms.MessageID) (*quote, error) {
	seq, err := parseSeq(id)
	if err != nil {
		return nil, nil //nolint:nilerr // no id, or one of another platform: nothing to quote
	}
	e, found, err := a.load(ctx, chat, seq)
	if err != nil || !found {
		return nil, err
	}
	return &quote{Seq: seq, From: e.From, Text: shorten(e.Text, previewLen)}, nil
}

// announce shows an entry in the open tabs. A finished message of ours ends the typing indicator.
func (a *Adapter) announce(chat platforms.ChatID, seq int64, e entry) {
	a.hub.publishSized("message", "message/"+strconv.FormatInt(seq, 10), 512+3*len(e.Text),
		func() any { return viewMessage(chat, seq, e) })
	if e.From == fromAgent && !e.Interim && !e.Progress {
		a.endTyping(chat)
	}
}

// Delete removes a message of ours with its files. One that is gone already is success; a person's message
// is refused.
func (a *Adapter) Delete(ctx context.Context, at platforms.Address, id platforms.MessageID) error {
	if err := checkAddress(at); err != nil {
		return err
	}
	seq, err := parseSeq(id)
	if err != nil {
		return a.sendError(err, platforms.NotSent)
	}
	unlock := a.lockChat(at.Chat)
	defer unlock()
	e, found, err := a.load(ctx, at.Chat, seq)
	if err != nil {
		return a.sendError(err, platforms.NotSent)
	}
	if !found {
		return nil
	}
	if e.From != fromAgent {
		return &platforms.SendError{
			Kind: platforms.BadRequest, Certainty: platforms.NotSent,
			Err: fmt.Errorf("message %d is not ours to delete", seq),
		}
	}
	if err := a.opts.Log.Remove(ctx, at.Chat, seq); err != nil {
		return a.sendError(err, platforms.Unknown)
	}
	a.discard(e.Files)
	a.hub.publish("removed", "message/"+strconv.FormatInt(seq, 10), func() any {
		return removedView{Chat: at.Chat, Seq: seq}
	})
	return nil
}

func gone(seq int64) error {
	return &platforms.SendError{
		Kind: platforms.MessageGone, Certainty: platforms.NotSent,
		Err: fmt.Errorf("there is no message %d in the chat", seq),
	}
}

// sendError names a failure of the log or the media folder.
func (a *Adapter) sendError(err error, c platforms.Certainty) error {
	kind := platforms.Transient
	if errors.Is(err, errGone) {
		kind, c = platforms.MessageGone, platforms.NotSent
	}
	return &platforms.SendError{Kind: kind, Certainty: c, Err: err}
}
