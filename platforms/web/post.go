package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/language"

	"herald/platforms"
)

// acceptWithin bounds the storing of one message.
const acceptWithin = 30 * time.Second

// drainMost is how much of a body that is too big we read on, so that the browser sees our answer and not
// a broken connection.
const drainMost = 64 << 20

// post is a message from the browser.
type post struct {
	// ID is the browser's id of the message, the same when it tries again.
	ID    string `json:"id"`
	Text  string `json:"text"`
	files []file
}

// validate checks a post before anything is stored.
func (p post) validate(maxText int64) error {
	switch {
	case !validID(p.ID):
		return badRequest("A message id is 8 to 64 letters, digits, '-' and '_', not %q.", shorten(strings.ToValidUTF8(p.ID, "?"), 80))
	case int64(len(p.Text)) > maxText:
		return tooLong(int64(len(p.Text)), maxText)
	case !utf8.ValidString(p.Text):
		return badRequest("The text is not valid UTF-8.")
	}
	return nil
}

func tooLong(have, most int64) error {
	return &errBody{http.StatusRequestEntityTooLarge, "too_long", fmt.Sprintf(
		"The message has %s; at most %s can be sent. Shorten it, or attach it as a file.", bytesText(have), bytesText(most))}
}

// decodePost reads the JSON of a post.
func decodePost(body io.Reader, maxText int64) (post, error) {
	// JSON may write one byte as six: "\u0041".
	p, err := decodeJSON[post](body, 6*maxText+4096)
	var e *errBody
	if errors.As(err, &e) && e.status == http.StatusRequestEntityTooLarge {
		return post{}, &errBody{e.status, "too_long", fmt.Sprintf(
			"The message is too long; at most %s can be sent. Shorten it, or attach it as a file.", bytesText(maxText))}
	}
	if err != nil {
		return post{}, err
	}
	return p, p.validate(maxText)
}

// accepting enters for a request that writes, which gets acceptWithin of Run's context. ok is false while the
// adapter does not run; the request is answered then.
func (a *Adapter) accepting(w http.ResponseWriter, r *http.Request) (ctx context.Context, sink platforms.Sink, leave func(), ok bool) {
	run, sink, left, ok := a.enter()
	if !ok {
		a.unready(w, r)
		return nil, nil, nil, false
	}
	ctx, cancel := context.WithTimeout(run, acceptWithin)
	return ctx, sink, func() { cancel(); left() }, true
}

// postMessage takes a message: as JSON, or as a form whose part "message" is that JSON and whose parts
// "file" are its files, in this order. It answers 200 once the message is accepted (P1).
func (a *Adapter) postMessage(w http.ResponseWriter, r *http.Request) {
	chat, ok := a.chatOf(w, r)
	if !ok {
		return
	}
	if !a.running() { // known before the files are up
		a.unready(w, r)
		return
	}
	p, err := a.readPost(r)
	if err != nil {
		_, _ = io.CopyN(io.Discard, r.Body, drainMost)
		a.failBody(w, r, err)
		return
	}
	ctx, sink, leave, ok := a.accepting(w, r)
	if !ok {
		return
	}
	defer leave()
	seq, e, err := a.keep(ctx, chat, p, preferred(r))
	if err != nil {
		a.refuseMessage(w, r, err)
		return
	}
	a.accept(ctx, w, r, sink, chat, seq, e)
}

// keep appends a post to the log as pending, and returns the log's entry of it: the first one when it was
// posted before.
func (a *Adapter) keep(ctx context.Context, chat platforms.ChatID, p post, lang string) (int64, entry, error) {
	unlock := a.lockChat(chat)
	defer unlock()
	e := entry{
		From: fromUser, Text: p.Text, At: a.opts.Now().UTC(), Client: p.ID, Language: lang,
		Pending: true, Files: p.files,
	}
	var err error
	if e.Title, err = a.titleOf(ctx, chat, e); err != nil {
		return 0, entry{}, err
	}
	seq, stored, err := a.append(ctx, chat, "user/"+p.ID, e)
	if err == nil && len(p.files) > 0 && (len(stored.Files) == 0 || stored.Files[0].ID != p.files[0].ID) {
		a.discard(p.files) // it was posted before, with its files
	}
	return seq, stored, err
}

// discard removes files that belong to no message.
func (a *Adapter) discard(files []file) {
	for _, f := range files {
		if err := a.media.remove(f.ID); err != nil {
			a.log.Warn().Err(err).Str("file", f.ID).Msg("unused file stays")
		}
	}
}

// accept offers an entry to the core unless that was done, shows it, and answers.
func (a *Adapter) accept(ctx context.Context, w http.ResponseWriter, r *http.Request, sink platforms.Sink, chat platforms.ChatID,
	seq int64, e entry) {
	if e.Pending {
		if err := a.offer(ctx, sink, a.messageEvent(chat, seq, e)); err != nil {
			a.refuseMessage(w, r, err)
			return
		}
		e.Pending = false
		if err := a.settle(context.WithoutCancel(ctx), chat, seq, e); err != nil {
			// It is accepted all the same: only the mark stays, and with it a button that does no harm.
			a.log.Error().Err(err).Int64("seq", seq).Msg("accepted message stays marked as pending")
		}
	}
	a.answer(w, http.StatusOK, sentView{Message: viewMessage(chat, seq, e)})
}

// settle takes the pending mark off an entry and shows the entry in the open tabs.
func (a *Adapter) settle(ctx context.Context, chat platforms.ChatID, seq int64, e entry) error {
	payload, err := e.encode()
	if err != nil {
		return err
	}
	unlock := a.lockChat(chat)
	defer unlock()
	err = a.opts.Log.Update(ctx, chat, seq, payload)
	a.announce(chat, seq, e)
	return err
}

// messageEvent is the event of an entry, the same each time.
func (a *Adapter) messageEvent(chat platforms.ChatID, seq int64, e entry) platforms.Event {
	ev := a.event(chat, "m", e.Client)
	ev.At, ev.ChatName, ev.Sender.Language = e.At, e.Title, e.Language
	ev.Message = &platforms.Message{ID: messageID(seq), Text: e.Text}
	for _, f := range e.Files {
		ev.Message.Attachments = append(ev.Message.Attachments, platforms.Attachment{
			Kind: f.Kind, Name: f.Name, MIME: f.MIME, Size: f.Size, Ref: f.ID, Path: a.media.path(f),
		})
	}
	return ev
}

// event makes an event without a body. kind keeps the ids of messages and clicks apart.
func (a *Adapter) event(chat platforms.ChatID, kind, id string) platforms.Event {
	return platforms.Event{
		ID:        platforms.EventID(string(chat) + "/" + kind + "/" + id),
		Address:   platforms.Address{Platform: Platform, Account: Account, Chat: chat},
		ChatType:  platforms.DM,
		Sender:    platforms.User{ID: Owner, Name: string(Owner)},
		Addressed: true,
	}
}

// retryMessage offers a message again that is in the log and was not yet accepted.
func (a *Adapter) retryMessage(w http.ResponseWriter, r *http.Request) {
	chat, ok := a.chatOf(w, r)
	if !ok {
		return
	}
	seq, err := parseSeq(platforms.MessageID(r.PathValue("seq")))
	if err != nil {
		a.failBody(w, r, badRequest("A message number is positive, not %q.", r.PathValue("seq")))
		return
	}
	ctx, sink, leave, ok := a.accepting(w, r)
	if !ok {
		return
	}
	defer leave()
	e, found, err := a.load(ctx, chat, seq)
	switch {
	case err != nil:
		a.internal(w, r, err)
	case !found || e.From != fromUser:
		a.fail(w, r, http.StatusNotFound, "not_found", "There is no such message of yours in this chat.")
	default:
		a.accept(ctx, w, r, sink, chat, seq, e)
	}
}

// postClick takes a press on a button of a message of ours. Only what the message offers can be pressed
// (P13), and only in its chat (P5).
func (a *Adapter) postClick(w http.ResponseWriter, r *http.Request) {
	chat, ok := a.chatOf(w, r)
	if !ok {
		return
	}
	c, err := decodeClick(r)
	if err != nil {
		a.failBody(w, r, err)
		return
	}
	ctx, sink, leave, ok := a.accepting(w, r)
	if !ok {
		return
	}
	defer leave()
	seq, err := parseSeq(c.Message)
	if err != nil {
		a.failBody(w, r, badRequest("A message number is positive, not %q.", shorten(string(c.Message), 80)))
		return
	}
	e, found, err := a.load(ctx, chat, seq)
	if err != nil {
		a.internal(w, r, err)
		return
	}
	if !found || e.From != fromAgent || !offers(e.Buttons, c.Data) {
		a.fail(w, r, http.StatusConflict, "gone", "That button is no longer there.")
		return
	}
	ev := a.event(chat, "c", c.ID)
	ev.At, ev.ChatName, ev.Sender.Language = a.opts.Now().UTC(), e.Title, preferred(r)
	ev.Click = &platforms.Click{MessageID: c.Message, Data: c.Data, Reply: c.ID}
	if err := a.offer(ctx, sink, ev); err != nil {
		a.refuseMessage(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// click is a press from the browser.
type click struct {
	ID      string              `json:"id"`
	Message platforms.MessageID `json:"message"`
	Data    string              `json:"data"`
}

func decodeClick(r *http.Request) (click, error) {
	if !isJSON(r) {
		return click{}, badRequest("Content-Type must be application/json.")
	}
	c, err := decodeJSON[click](r.Body, 16<<10)
	if err != nil {
		return click{}, err
	}
	if !validID(c.ID) {
		return click{}, badRequest("A click id is 8 to 64 letters, digits, '-' and '_', not %q.", shorten(strings.ToValidUTF8(c.ID, "?"), 80))
	}
	return c, nil
}

func offers(rows [][]platforms.Button, data string) bool {
	for _, row := range rows {
		for _, b := range row {
			if b.Data == data {
				return true
			}
		}
	}
	return false
}

// readPost reads a message and stores its files.
func (a *Adapter) readPost(r *http.Request) (post, error) {
	t, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && t == "application/json":
		p, err := decodePost(r.Body, a.opts.MaxText)
		if err == nil && strings.TrimSpace(p.Text) == "" {
			err = badRequest("The message is empty.")
		}
		return p, err
	case err == nil && t == "multipart/form-data" && params["boundary"] != "":
		return a.readForm(r.Context(), multipart.NewReader(r.Body, params["boundary"]))
	}
	return post{}, badRequest("Content-Type must be application/json or multipart/form-data.")
}

func (a *Adapter) readForm(ctx context.Context, form *multipart.Reader) (_ post, err error) {
	var p post
	var total int64
	defer func() {
		if err != nil {
			a.discard(p.files)
		}
	}()
	for {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return post{}, badRequest("The request broke off: %v.", err)
		}
		switch {
		case p.ID == "" && part.FormName() == "message":
			decoded, err := decodePost(part, a.opts.MaxText)
			if err != nil {
				return post{}, err
			}
			p = decoded
		case p.ID == "":
			return post{}, badRequest("The part \"message\" must come first.")
		case part.FormName() != "file":
			return post{}, badRequest("There is a part %q; only \"message\" and \"file\" are known.", shorten(part.FormName(), 80))
		case len(p.files) == MaxFiles:
			return post{}, &errBody{http.StatusRequestEntityTooLarge, "too_many", fmt.Sprintf("At most %d files go with one message.", MaxFiles)}
		default:
			f, err := a.media.save(ctx, newFileID(), part.FileName(), part.Header.Get("Content-Type"), part, a.opts.MaxUpload-total)
			if errors.Is(err, errTooBig) {
				return post{}, &errBody{http.StatusRequestEntityTooLarge, "too_big", fmt.Sprintf(
					"%s is too big: at most %s can be sent with one message.", platforms.SafeName(part.FileName()), bytesText(a.opts.MaxUpload))}
			}
			if err != nil {
				return post{}, a.uploadFailed(err)
			}
			total += f.Size
			p.files = append(p.files, f)
		}
	}
	if p.ID == "" {
		return post{}, badRequest("There is no part \"message\".")
	}
	if strings.TrimSpace(p.Text) == "" && len(p.files) == 0 {
		return post{}, badRequest("The message is empty.")
	}
	return p, nil
}

// uploadFailed tells a request that broke off from a disk of ours that is full.
func (a *Adapter) uploadFailed(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled) {
		return badRequest("The upload broke off.")
	}
	a.log.Error().Err(err).Msg("upload cannot be stored")
	return &errBody{http.StatusServiceUnavailable, "store", "Herald can't store the file right now (is its disk full?). Nothing was sent; try again."}
}

// unready answers a message that comes while the adapter does not run.
func (a *Adapter) unready(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", "2")
	a.fail(w, r, http.StatusServiceUnavailable, "stopped", "Herald is starting or stopping. Your message is kept here; try again in a moment.")
}

// refuseMessage answers a message that the core or the log could not take (P7).
func (a *Adapter) refuseMessage(w http.ResponseWriter, r *http.Request, err error) {
	a.log.Error().Err(err).Msg("message not accepted")
	w.Header().Set("Retry-After", "5")
	if errors.Is(err, errGone) {
		a.fail(w, r, http.StatusConflict, "gone", "This message was deleted.")
		return
	}
	why := "Herald can't store messages right now (is its disk full, or is it shutting down?)."
	if errors.Is(err, context.DeadlineExceeded) {
		why = "Herald took too long to store the message."
	}
	a.fail(w, r, http.StatusServiceUnavailable, "refused", why+" It is kept here; try again in a moment.")
}

// preferred is the browser's first language, or "".
func preferred(r *http.Request) string {
	header := r.Header.Get("Accept-Language")
	if len(header) > 256 {
		return ""
	}
	tags, _, err := language.ParseAcceptLanguage(header)
	if err != nil || len(tags) == 0 || tags[0] == language.Und {
		return ""
	}
	return tags[0].String()
}
