package teams

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"herald/platforms"
)

// file is an attachment that can be sent.
type file struct {
	platforms.Attachment
	name string
	size int64
	body []byte // of a picture that Teams shows in the chat itself
}

// inline returns the picture as an attachment that holds it.
func (f file) inline() outAttachment {
	mime := pictureType(f.name)
	return outAttachment{ContentType: mime, Name: f.name, ContentURL: "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(f.body)}
}

func nameOf(f platforms.Attachment) string {
	name := f.Name
	if name == "" {
		name = filepath.Base(f.Path)
	}
	return platforms.SafeName(name)
}

// usable sorts out files that can't be sent and notes why.
func (o *outbound) usable() []file {
	var files []file
	for _, at := range o.out.Attachments {
		info, err := os.Stat(at.Path)
		switch {
		case at.Path == "" || errors.Is(err, os.ErrNotExist):
			o.note(at, "the file does not exist")
		case err != nil || !info.Mode().IsRegular():
			o.note(at, "it is no readable file")
		case info.Size() == 0:
			o.note(at, "the file is empty")
		case info.Size() > maxUpload:
			o.note(at, fmt.Sprintf("it has %s, at most %s are sent to Teams", megabytes(info.Size()), megabytes(maxUpload)))
		default:
			files = append(files, file{Attachment: at, name: nameOf(at), size: info.Size()})
		}
	}
	return files
}

// split takes the pictures that can be shown in the chat itself from the other files, in order.
func (o *outbound) split(files []file) (inline, rest []file) {
	for _, f := range files {
		if f.AsDocument || f.Kind != platforms.Image || pictureType(f.name) == "" || f.size > inlineLimit {
			rest = append(rest, f)
			continue
		}
		body, err := os.ReadFile(f.Path)
		if err != nil || len(body) > inlineLimit || len(body) == 0 {
			o.note(f.Attachment, "it can't be read")
			continue
		}
		f.body = body
		inline = append(inline, f)
	}
	return inline, rest
}

// pictureType returns the media type of a picture that Teams shows inside a message, empty for others.
func pictureType(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	}
	return ""
}

// sendFiles sends the files that are no part of the message: in a personal chat the person is asked for each, elsewhere they
// go to a SharePoint site where one is set up.
func (o *outbound) sendFiles(ctx context.Context, files []file) error {
	for _, f := range files {
		var err error
		switch {
		case o.Type == personal:
			err = o.offer(ctx, f)
		case o.a.s.GraphSite != "":
			err = o.share(ctx, f)
		default:
			o.note(f.Attachment, "Teams lets a bot send files other than small pictures in personal chats only (platforms.teams.graph_site lifts that)")
			continue
		}
		if err == nil {
			continue
		}
		if !o.some {
			return err
		}
		o.failed(f, err)
	}
	return nil
}

// failed notes a file that did not get through after something else did.
func (o *outbound) failed(f file, err error) {
	e := platforms.AsSendError(err)
	why := "Teams refused it: " + string(e.Kind)
	switch {
	case e.Kind == platforms.RateLimited:
		why = fmt.Sprintf("Teams asks to wait %s", e.RetryAfter.Round(time.Second))
	case e.Certainty == platforms.Unknown:
		why = "the connection broke, it may have arrived all the same"
	case e.Kind == platforms.Transient:
		why = "Teams could not be reached"
	}
	o.note(f.Attachment, why)
	o.a.s.Log.Warn().Err(err).Str("chat", o.chat).Msg("a file could not be sent")
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }
