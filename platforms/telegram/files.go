package telegram

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"herald/platforms"
	"herald/platforms/format"
	"herald/platforms/wire"
)

// method is the Bot API method that a file goes out by.
type method string

const (
	asPhoto     method = "photo"
	asVideo     method = "video"
	asAnimation method = "animation"
	asAudio     method = "audio"
	asVoice     method = "voice"
	asSticker   method = "sticker"
	asDocument  method = "document"
)

// file is an attachment that can be sent.
type file struct {
	wire.File
	method method
}

// album reports whether the file may be in a media group with pictures.
func (f file) album() bool { return f.method == asPhoto || f.method == asVideo }

// sendFiles sends the attachments, with the text as the first one's caption where it fits, else before
// them. What can't be sent becomes a note.
func (o *outbound) sendFiles(ctx context.Context) error {
	files := o.usable()
	text := o.out.Text.AsPlain()
	hasText := text != ""
	groups := grouped(files)
	ownMessage := hasText && (len(files) == 0 || files[0].method == asSticker || units(text) > captionLimit ||
		len(groups[0]) > 1 && len(o.out.Buttons) > 0 || files[0].Caption != "")
	if ownMessage {
		if err := o.sendText(ctx, true); err != nil {
			return err
		}
	} else if len(o.out.Buttons) > 0 && len(groups) > 0 && len(groups[0]) > 1 {
		// A media group has no buttons: its first file goes alone, and carries them.
		groups = append([][]file{groups[0][:1], groups[0][1:]}, groups[1:]...)
	}
	for i, group := range groups {
		captioned := i == 0 && hasText && !ownMessage
		if err := o.sendGroup(ctx, group, captioned, i == 0 && !ownMessage); err != nil {
			if err := o.missed(err, group); err != nil {
				return err
			}
		}
	}
	return nil
}

// usable returns the files that can be sent, and notes why the others can't.
func (o *outbound) usable() []file {
	var files []file
	for _, f := range o.Files(o.out.Attachments, 1, o.a.maxUpload()) {
		files = append(files, file{f, methodOf(f)})
	}
	return files
}

// methodOf chooses how a file is shown. What Telegram's clients can't show goes as a document.
func methodOf(f wire.File) method {
	if f.AsDocument {
		return asDocument
	}
	ext := strings.ToLower(filepath.Ext(f.Name))
	switch f.Kind {
	case platforms.Image:
		switch {
		case ext == ".gif" || f.MIME == "image/gif":
			return asAnimation
		case f.Size <= photoLimit && slices.Contains([]string{".jpg", ".jpeg", ".png", ".webp"}, ext):
			return asPhoto
		}
	case platforms.Video:
		if slices.Contains([]string{".mp4", ".m4v"}, ext) {
			return asVideo
		}
	case platforms.Voice:
		if slices.Contains([]string{".ogg", ".oga", ".opus", ".mp3", ".m4a"}, ext) {
			return asVoice
		}
	case platforms.Audio:
		if slices.Contains([]string{".mp3", ".m4a"}, ext) {
			return asAudio
		}
	case platforms.Sticker:
		if slices.Contains([]string{".webp", ".tgs", ".webm"}, ext) {
			return asSticker
		}
	}
	return asDocument
}

// missed is Failed for files.
func (o *outbound) missed(err error, files []file) error {
	list := make([]platforms.Attachment, len(files))
	for i, f := range files {
		list[i] = f.Attachment
	}
	return o.Failed(err, list...)
}

// grouped keeps the order and puts neighbouring pictures and videos together, at most ten.
func grouped(files []file) [][]file {
	var groups [][]file
	for _, f := range files {
		if n := len(groups); n > 0 && f.album() && groups[n-1][0].album() && len(groups[n-1]) < albumLimit {
			groups[n-1] = append(groups[n-1], f)
			continue
		}
		groups = append(groups, []file{f})
	}
	return groups
}

// sendGroup sends one file, or several as a media group. first marks the group that carries the buttons.
func (o *outbound) sendGroup(ctx context.Context, group []file, captioned, first bool) error {
	send := func(body string, mode models.ParseMode) error {
		if len(group) > 1 {
			return o.do(ctx, false, func(ctx context.Context) error { return o.sendAlbum(ctx, group, body, mode) })
		}
		f := group[0]
		err := o.do(ctx, false, func(ctx context.Context) error { return o.sendFile(ctx, f, body, mode, first) })
		if f.method != asDocument && refusedAsMedia(err) {
			f.method = asDocument
			err = o.do(ctx, false, func(ctx context.Context) error { return o.sendFile(ctx, f, body, mode, first) })
		}
		return err
	}
	err := o.captioned(group, captioned, send)
	if len(group) > 1 && refusedAsMedia(err) { // one bad picture spoils the group: send each alone
		for i, f := range group {
			if err := o.sendGroup(ctx, []file{f}, captioned && i == 0, first && i == 0); err != nil {
				if err := o.missed(err, []file{f}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return err
}

// captioned calls send with the caption of the group's first file.
func (o *outbound) captioned(group []file, text bool, send func(string, models.ParseMode) error) error {
	switch {
	case text:
		return o.withPlain(send)
	case group[0].Caption != "":
		return send(cut(group[0].Caption, captionLimit), "")
	}
	return send("", "")
}

// refusedAsMedia reports whether Telegram could not show the file in the way we asked for.
func refusedAsMedia(err error) bool {
	for _, words := range []string{"photo_invalid", "photo_ext_invalid", "photo_save_file_invalid", "image_process_failed",
		"wrong type of the web page content", "voice_messages_forbidden", "wrong file identifier", "media_invalid", "video_file_invalid",
		"sticker_invalid", "failed to get http url content"} {
		if says(err, words) {
			return true
		}
	}
	return false
}

// sendFile uploads one file.
func (o *outbound) sendFile(ctx context.Context, f file, caption string, mode models.ParseMode, buttons bool) error {
	body, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	defer body.Close()
	upload := &models.InputFileUpload{Filename: f.Name, Data: body}
	var markup models.ReplyMarkup
	if buttons && len(o.out.Buttons) > 0 {
		markup = keyboardOf(o.out.Buttons)
	}
	api, reply, silent := o.a.api, o.reply(), o.out.Silent
	var m *models.Message
	switch f.method {
	case asPhoto:
		m, err = api.SendPhoto(ctx, &bot.SendPhotoParams{ChatID: o.chat, MessageThreadID: o.thread, Photo: upload, Caption: caption,
			ParseMode: mode, DisableNotification: silent, ReplyParameters: reply, ReplyMarkup: markup})
	case asVideo:
		m, err = api.SendVideo(ctx, &bot.SendVideoParams{ChatID: o.chat, MessageThreadID: o.thread, Video: upload, Caption: caption,
			ParseMode: mode, SupportsStreaming: true, DisableNotification: silent, ReplyParameters: reply, ReplyMarkup: markup})
	case asAnimation:
		m, err = api.SendAnimation(ctx, &bot.SendAnimationParams{ChatID: o.chat, MessageThreadID: o.thread, Animation: upload, Caption: caption,
			ParseMode: mode, DisableNotification: silent, ReplyParameters: reply, ReplyMarkup: markup})
	case asAudio:
		m, err = api.SendAudio(ctx, &bot.SendAudioParams{ChatID: o.chat, MessageThreadID: o.thread, Audio: upload, Caption: caption,
			ParseMode: mode, DisableNotification: silent, ReplyParameters: reply, ReplyMarkup: markup})
	case asVoice:
		m, err = api.SendVoice(ctx, &bot.SendVoiceParams{ChatID: o.chat, MessageThreadID: o.thread, Voice: upload, Caption: caption,
			ParseMode: mode, DisableNotification: silent, ReplyParameters: reply, ReplyMarkup: markup})
	case asSticker:
		m, err = api.SendSticker(ctx, &bot.SendStickerParams{ChatID: o.chat, MessageThreadID: o.thread, Sticker: upload,
			DisableNotification: silent, ReplyParameters: reply, ReplyMarkup: markup})
	default:
		m, err = api.SendDocument(ctx, &bot.SendDocumentParams{ChatID: o.chat, MessageThreadID: o.thread, Document: upload, Caption: caption,
			ParseMode: mode, DisableContentTypeDetection: f.AsDocument, DisableNotification: silent, ReplyParameters: reply, ReplyMarkup: markup})
	}
	if err == nil {
		o.sent(m)
	}
	return err
}

// sendAlbum uploads several pictures and videos as one media group.
func (o *outbound) sendAlbum(ctx context.Context, group []file, caption string, mode models.ParseMode) error {
	media := make([]models.InputMedia, len(group))
	for i, f := range group {
		body, err := os.Open(f.Path)
		if err != nil {
			return err
		}
		defer body.Close()
		text, textMode := caption, mode
		if i > 0 {
			text, textMode = cut(f.Caption, captionLimit), ""
		}
		ref := fmt.Sprintf("attach://f%d%s", i, strings.ToLower(filepath.Ext(f.Name)))
		if f.method == asVideo {
			media[i] = &models.InputMediaVideo{Media: ref, Caption: text, ParseMode: textMode, SupportsStreaming: true, MediaAttachment: body}
		} else {
			media[i] = &models.InputMediaPhoto{Media: ref, Caption: text, ParseMode: textMode, MediaAttachment: body}
		}
	}
	messages, err := o.a.api.SendMediaGroup(ctx, &bot.SendMediaGroupParams{
		ChatID: o.chat, MessageThreadID: o.thread, Media: media, DisableNotification: o.out.Silent, ReplyParameters: o.reply(),
	})
	if err != nil {
		return err
	}
	for _, m := range messages {
		o.sent(m)
	}
	return nil
}

// cut shortens text to limit UTF-16 units.
func cut(text string, limit int) string { return format.Cut(text, limit, platforms.UTF16) }
