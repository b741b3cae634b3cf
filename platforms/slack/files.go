package slack

import (
	"context"
	"fmt"
	"os"
	"time"

	api "github.com/slack-go/slack"

	"herald/platforms"
)

// sendFiles uploads the attachments and shares them in the place, in order. A file that can't be read or that Slack
// does not take leaves a note. The error is of the first request to Slack that failed while nothing was visible.
func (o *outbound) sendFiles(ctx context.Context) error {
	var ready []api.FileSummary
	var names []platforms.Attachment
	share := func(caption string) error {
		if len(ready) == 0 {
			return nil
		}
		err := o.share(ctx, ready, caption)
		if err != nil {
			for _, f := range names {
				o.note(f, err.Error())
			}
		}
		ready, names = nil, nil
		return err
	}
	for _, f := range o.out.Attachments {
		if f.Caption != "" {
			if err := share(""); err != nil && !o.some {
				return err
			}
		}
		id, err := o.upload(ctx, f)
		switch {
		case err != nil && !o.some && len(ready) == 0 && isRemote(err):
			return err
		case err != nil:
			o.note(f, err.Error())
			continue
		}
		ready = append(ready, api.FileSummary{ID: id, Title: platforms.SafeName(f.Name)})
		names = append(names, f)
		if f.Caption != "" {
			if err := o.captioned(ctx, f.Caption, share); err != nil && !o.some {
				return err
			}
		}
	}
	if err := share(""); err != nil && !o.some {
		return err
	}
	return nil
}

// captioned shares a file with its caption, which goes first as a message of its own where previews are set: a file's
// comment takes no such setting.
func (o *outbound) captioned(ctx context.Context, caption string, share func(string) error) error {
	if o.a.s.UnfurlLinks == nil && o.a.s.UnfurlMedia == nil {
		return share(escape(caption))
	}
	if err := o.postMessage(ctx, escape(caption), nil); err != nil && !o.some {
		return err
	}
	return share("")
}

// isRemote reports whether an error came from Slack and not from the file.
func isRemote(err error) bool {
	_, local := err.(*localError)
	return !local
}

// localError is a problem with a file on this machine.
type localError struct{ text string }

func (e *localError) Error() string { return e.text }

// upload brings a file's bytes to Slack, which shows nothing yet. It is tried three times on a rate limit and on
// trouble of Slack.
func (o *outbound) upload(ctx context.Context, f platforms.Attachment) (id string, err error) {
	info, err := os.Stat(f.Path)
	switch {
	case err != nil || !info.Mode().IsRegular():
		return "", &localError{"the file can't be read"}
	case info.Size() == 0:
		return "", &localError{"the file is empty, which Slack does not take"}
	case info.Size() > maxUpload:
		return "", &localError{fmt.Sprintf("the file has %d MB, Slack takes up to %d MB", info.Size()>>20, maxUpload>>20)}
	}
	wait := o.a.s.newBackoff()
	for try := 1; ; try++ {
		id, err = o.uploadOnce(ctx, f, info.Size())
		e := platforms.AsSendError(err)
		if e == nil || !isRemote(err) || try == uploadTries || e.Kind != platforms.Transient && e.Kind != platforms.RateLimited {
			return id, err
		}
		pause := max(wait.NextBackOff(), e.RetryAfter)
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < pause {
			return id, err
		}
		if o.a.s.Clock.Sleep(ctx, pause) != nil {
			return id, err
		}
	}
}

func (o *outbound) uploadOnce(ctx context.Context, f platforms.Attachment, size int64) (string, error) {
	a := o.a
	name := platforms.SafeName(firstOf(f.Name, f.Path))
	var target *api.GetUploadURLExternalResponse
	err := a.do(ctx, "files.getUploadURLExternal", "", func(ctx context.Context) (err error) {
		target, err = a.api.GetUploadURLExternalContext(ctx, api.GetUploadURLExternalParameters{FileName: name, FileSize: int(size)})
		return err
	})
	if err != nil {
		return "", invisible(err)
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return "", &localError{"the file can't be read"}
	}
	defer file.Close()
	err = a.do(ctx, "upload", "", func(ctx context.Context) error {
		return withoutURL(a.api.UploadToURL(ctx, api.UploadToURLParameters{UploadURL: target.UploadURL, Reader: file, Filename: name}))
	})
	if err != nil {
		return "", invisible(err)
	}
	return target.FileID, nil
}

// invisible says that nothing can be seen of a call whatever came of it.
func invisible(err error) error {
	e := *platforms.AsSendError(err)
	e.Certainty = platforms.NotSent
	return &e
}

// share makes uploaded files visible as one message.
func (o *outbound) share(ctx context.Context, files []api.FileSummary, comment string) error {
	a := o.a
	waited, err := a.gate.pass(ctx, "files.completeUploadExternal", o.channel, false)
	if waited > 0 {
		a.s.Metrics.GateWaited(waited)
	}
	if err != nil {
		return err
	}
	err = a.do(ctx, "files.completeUploadExternal", o.channel, func(ctx context.Context) error {
		_, err := a.api.CompleteUploadExternalContext(ctx, api.CompleteUploadExternalParameters{
			Files: files, Channel: o.channel, ThreadTimestamp: o.thread, InitialComment: comment,
		})
		return err
	})
	if err == nil {
		o.some = true
	}
	return err
}
