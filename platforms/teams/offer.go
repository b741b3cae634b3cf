package teams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"herald/platforms"
	"herald/platforms/fetch"
	"herald/platforms/wire"
)

type consentCard struct {
	Description   string         `json:"description,omitempty"`
	Size          int64          `json:"sizeInBytes"`
	AcceptContext consentContext `json:"acceptContext"`
	Decline       consentContext `json:"declineContext"`
}

type consentContext struct {
	ID string `json:"herald"`
}

// offer asks the person of a personal chat whether a file may be sent.
func (o *outbound) offer(ctx context.Context, f file) error {
	c := o.a.consents
	if c.s.MediaDir == "" {
		o.Note(f.Attachment, "there is no folder where files could wait for consent")
		return nil
	}
	p, err := c.add(ctx, o.chat, f)
	if err != nil {
		o.a.s.Log.Error().Err(err).Msg("a file can't wait for consent")
		o.Note(f.Attachment, "it could not be put aside until you accept it")
		return nil
	}
	card := consentCard{Description: cut(f.Caption, 500), Size: p.Size, AcceptContext: consentContext{p.ID}, Decline: consentContext{p.ID}}
	act := outActivity{Type: "message", Attachments: []outAttachment{{ContentType: consentType, Name: p.Name, Content: card}}}
	if !o.Some {
		act.ReplyToID = string(o.out.ReplyTo)
	}
	id, _, err := o.post(ctx, "", act, false)
	if err != nil {
		if platforms.AsSendError(err).Certainty == platforms.NotSent {
			_ = c.drop(ctx, p.ID)
		}
		return err
	}
	p.Message = id
	c.mu.Lock()
	err = c.keep(ctx, p)
	c.mu.Unlock()
	if err != nil {
		o.a.s.Log.Warn().Err(err).Msg("the card of a file can't be noted")
	}
	o.sent(ctx, id)
	return nil
}

// consentValue is what an answer to a card carries.
type consentValue struct {
	Action  string         `json:"action"`
	Context consentContext `json:"context"`
	Upload  struct {
		ContentURL string `json:"contentUrl"`
		Name       string `json:"name"`
		UploadURL  string `json:"uploadUrl"`
		UniqueID   string `json:"uniqueId"`
		FileType   string `json:"fileType"`
	} `json:"uploadInfo"`
}

// consented handles a person's answer to a card. The file goes up after the answer, within Run.
func (a *Adapter) consented(ctx context.Context, act *activity) (reply, error) {
	var v consentValue
	if json.Unmarshal(act.Value, &v) != nil {
		return reply{status: http.StatusBadRequest}, nil
	}
	chat, _ := act.place()
	p, ok, err := a.consents.find(ctx, chat, v.Context.ID)
	if err != nil {
		return reply{}, err
	}
	at := platforms.Address{Platform: Platform, Account: a.s.account.ID, Chat: platforms.ChatID(chat)}
	if p.Message == "" {
		p.Message = act.ReplyToID
	}
	run, work := a.intake.ctx, a.intake.work
	a.heard()
	switch {
	case !ok:
		work.Go(func() { a.recard(run, at, act.ReplyToID, "This file is not available any more.") })
	case v.Action == "accept":
		if a.consents.claim(p.ID) {
			work.Go(func() {
				defer a.consents.release(p.ID)
				a.deliver(run, at, p, v)
			})
		}
	default:
		if err := a.consents.drop(ctx, p.ID); err != nil {
			return reply{}, err
		}
		work.Go(func() { a.recard(run, at, p.Message, p.Name+" was not sent: you declined it.") })
	}
	return reply{status: http.StatusOK}, nil
}

// deliver puts an accepted file where the person has allowed it, and shows it.
func (a *Adapter) deliver(ctx context.Context, at platforms.Address, p pending, v consentValue) {
	err := a.upload(ctx, v.Upload.UploadURL, a.consents.path(p.ID), p.Size)
	if err != nil && ctx.Err() != nil {
		return // it still waits, and so does the card
	}
	if err := a.consents.drop(ctx, p.ID); err != nil {
		a.s.Log.Warn().Err(err).Msg("a file that is done can't be forgotten")
	}
	if err != nil {
		a.s.Log.Error().Err(err).Str("chat", p.Chat).Msg("an accepted file could not be uploaded")
		a.recard(ctx, at, p.Message, p.Name+" could not be sent: the upload to OneDrive failed.")
		return
	}
	t, err := a.target(ctx, at)
	if err != nil {
		return
	}
	o := outbound{a: a, target: t}
	shown := outActivity{Type: "message", Attachments: []outAttachment{fileInfo(v.Upload.ContentURL, p.Name, v.Upload.UniqueID, v.Upload.FileType)}}
	err = a.insist(ctx, func() error { _, _, err := o.post(ctx, "", shown, false); return err })
	if err != nil {
		a.s.Log.Warn().Err(err).Str("chat", p.Chat).Msg("a file was sent, and its card could not be")
		return
	}
	if p.Message != "" {
		if err := a.Delete(ctx, at, platforms.MessageID(p.Message)); err != nil {
			a.s.Log.Debug().Err(err).Msg("a card that is answered stays")
		}
	}
}

// insistence is how often a step that a person waits for is tried.
const insistence = 4

// insist repeats a step that certainly was not done, with the waits that are asked for.
func (a *Adapter) insist(ctx context.Context, step func() error) error {
	return a.newBackoff().Insist(ctx, a.s.Clock, insistence, step)
}

// fileInfo is the card of a file that lies in OneDrive or SharePoint.
func fileInfo(address, name, id, kind string) outAttachment {
	return outAttachment{ContentType: fileInfoType, ContentURL: address, Name: name, Content: map[string]string{"uniqueId": id, "fileType": kind}}
}

// recard puts a line of text in the place of a card.
func (a *Adapter) recard(ctx context.Context, at platforms.Address, message, text string) {
	if message == "" {
		return
	}
	text = strings.NewReplacer("*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`).Replace(text)
	err := a.insist(ctx, func() error {
		_, err := a.Send(ctx, platforms.Outgoing{Address: at, Edit: platforms.MessageID(message), Text: platforms.Text{Body: text}})
		return err
	})
	if err != nil && ctx.Err() == nil {
		a.s.Log.Warn().Err(err).Str("chat", string(at.Chat)).Msg("the card of a file could not be changed")
	}
}

// upload sends a file in chunks. The address comes from outside: the client refuses those inside the operator's network.
func (a *Adapter) upload(ctx context.Context, address, path string, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for from := int64(0); from < size; from += uploadChunk {
		n := min(uploadChunk, size-from)
		again := false
		err := a.insist(ctx, func() error {
			err := a.uploadRange(ctx, address, io.NewSectionReader(f, from, n), from, n, size, again)
			again = true
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// uploadRange sends one chunk. When it is sent again, the first attempt may have arrived: OneDrive answers 416 to a chunk
// that it has, and 404 when that was the last.

func (a *Adapter) uploadRange(ctx context.Context, address string, part io.Reader, from, n, size int64, again bool) error {
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, address, io.NopCloser(part))
	if err != nil {
		return platforms.Failure(platforms.BadRequest, "the upload address is no URL")
	}
	req.ContentLength = n
	req.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+n-1, size))
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := a.files.HTTP().Do(req)
	if errors.Is(err, fetch.ErrForbidden) {
		return platforms.Failure(platforms.BadRequest, "%s", a.scrub(wire.Bare(err).Error()))
	}
	if err != nil {
		return &platforms.SendError{Kind: platforms.Transient, Err: a.clean(err)}
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxDocument))
	refused := fmt.Errorf("%s answered %d to an upload", req.URL.Hostname(), resp.StatusCode)
	switch status := resp.StatusCode; {
	case status == http.StatusOK, status == http.StatusCreated, status == http.StatusAccepted:
		return nil
	case again && (status == http.StatusRequestedRangeNotSatisfiable || status == http.StatusNotFound && from+n == size):
		return nil
	case status == http.StatusTooManyRequests, status >= 500:
		return &platforms.SendError{Kind: platforms.Transient, RetryAfter: min(wire.RetryAfter(resp.Header), time.Minute), Err: refused}
	}
	return &platforms.SendError{Kind: platforms.BadRequest, Err: refused}
}
