package slack

import (
	"context"
	"os"

	api "github.com/slack-go/slack"

	"herald/platforms"
	"herald/platforms/wire"
)

// sendFiles uploads the attachments and shares them in the place, in order. A file that can't be read or that Slack
// does not take leaves a note. The error is of the first request to Slack that failed while nothing was visible.
func (o *outbound) sendFiles(ctx context.Context) error {
	var ready []api.FileSummary
	var shown []platforms.Attachment
	share := func(caption string) error {
		if len(ready) == 0 {
			return nil
		}
		err := o.Failed(o.share(ctx, ready, caption), shown...)
		ready, shown = nil, nil
		return err
	}
	for _, at := range o.out.Attachments {
		if at.Caption != "" {
			if err := share(""); err != nil {
				return err
			}
		}
		f, err := o.Open(at, 1, maxUpload)
		if err != nil {
			o.Note(at, err.Error())
			continue
		}
		id, err := o.upload(ctx, f)
		switch {
		case err != nil && !o.Some && len(ready) == 0:
			return err
		case err != nil:
			o.Note(at, o.Why(err))
			continue
		}
		ready = append(ready, api.FileSummary{ID: id, Title: f.Name})
		shown = append(shown, at)
		if at.Caption != "" {
			if err := o.captioned(ctx, at.Caption, share); err != nil {
				return err
			}
		}
	}
	return share("")
}

// captioned shares a file with its caption, which goes first as a message of its own where previews are set: a file's
// comment takes no such setting.
func (o *outbound) captioned(ctx context.Context, caption string, share func(string) error) error {
	if o.a.s.UnfurlLinks == nil && o.a.s.UnfurlMedia == nil {
		return share(escape(caption))
	}
	if err := o.Failed(o.postMessage(ctx, escape(caption), nil)); err != nil {
		return err
	}
	return share("")
}

// upload brings a file's bytes to Slack, which shows nothing yet. It is tried three times on a rate limit and on
// trouble of Slack.
func (o *outbound) upload(ctx context.Context, f wire.File) (id string, err error) {
	err = o.a.s.newBackoff().Insist(ctx, o.a.s.Clock, uploadTries, func() error {
		id, err = o.uploadOnce(ctx, f)
		return err
	})
	return id, err
}

func (o *outbound) uploadOnce(ctx context.Context, f wire.File) (string, error) {
	a := o.a
	var target *api.GetUploadURLExternalResponse
	err := a.do(ctx, "files.getUploadURLExternal", "", func(ctx context.Context) (err error) {
		target, err = a.api.GetUploadURLExternalContext(ctx, api.GetUploadURLExternalParameters{FileName: f.Name, FileSize: int(f.Size)})
		return err
	})
	if err != nil {
		return "", invisible(err)
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return "", platforms.Failure(platforms.BadRequest, "the file can't be read")
	}
	defer file.Close()
	err = a.do(ctx, "upload", "", func(ctx context.Context) error {
		return wire.Bare(a.api.UploadToURL(ctx, api.UploadToURLParameters{UploadURL: target.UploadURL, Reader: file, Filename: f.Name}))
	})
	if err != nil {
		return "", invisible(err)
	}
	return target.FileID, nil
}

// invisible marks a failed call as not sent: nothing of it can be seen, whether it arrived or not.
func invisible(err error) error {
	e := *platforms.AsSendError(err)
	e.Certainty = platforms.NotSent
	return &e
}

// share makes uploaded files visible as one message.
func (o *outbound) share(ctx context.Context, files []api.FileSummary, comment string) error {
	a := o.a
	if err := a.gate.pass(ctx, "files.completeUploadExternal", o.channel, false); err != nil {
		return err
	}
	err := a.do(ctx, "files.completeUploadExternal", o.channel, func(ctx context.Context) error {
		_, err := a.api.CompleteUploadExternalContext(ctx, api.CompleteUploadExternalParameters{
			Files: files, Channel: o.channel, ThreadTimestamp: o.thread, InitialComment: comment,
		})
		return err
	})
	if err == nil {
		o.Some = true
	}
	return err
}
