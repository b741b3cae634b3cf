package teams

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"

	"herald/platforms"
	"herald/platforms/wire"
)

// file is an attachment that can be sent.
type file struct {
	wire.File
	body []byte // of a picture that Teams shows in the chat itself
}

// inline returns the picture as an attachment that holds it.
func (f file) inline() outAttachment {
	mime := pictureType(f.Name)
	return outAttachment{ContentType: mime, Name: f.Name, ContentURL: "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(f.body)}
}

// usable returns the files that can be sent, and notes why the others can't.
func (o *outbound) usable() []file {
	var files []file
	for _, f := range o.Files(o.out.Attachments, 1, maxUpload) {
		files = append(files, file{File: f})
	}
	return files
}

// split takes the pictures that can be shown in the chat itself from the other files, in order.
func (o *outbound) split(files []file) (inline, rest []file) {
	for _, f := range files {
		if f.AsDocument || f.Kind != platforms.Image || pictureType(f.Name) == "" || f.Size > inlineLimit {
			rest = append(rest, f)
			continue
		}
		body, err := os.ReadFile(f.Path)
		if err != nil || len(body) > inlineLimit || len(body) == 0 {
			o.Note(f.Attachment, "it can't be read")
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
			o.Note(f.Attachment, "Teams lets a bot send files other than small pictures in personal chats only (platforms.teams.graph_site lifts that)")
			continue
		}
		if err := o.Failed(err, f.Attachment); err != nil {
			return err
		}
	}
	return nil
}
