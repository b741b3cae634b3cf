package signal

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"herald/platforms"
)

// Bounds of one conversion.
const (
	remuxTime   = 10 * time.Second
	convertTime = 60 * time.Second
)

// asVoice brings a voice note into the form that Signal's clients play everywhere, AAC in an m4a file. Without ffmpeg,
// and when it fails, the file goes out as it is.
func (o *outbound) asVoice(ctx context.Context, f outFile) outFile {
	switch f.mime {
	case "audio/mp4", "audio/m4a", "audio/x-m4a", "audio/aac":
		return f
	}
	if o.a.ffmpeg == "" {
		return f
	}
	dir, err := os.MkdirTemp("", "herald-voice-")
	if err != nil {
		return f
	}
	o.temps = append(o.temps, dir)
	to := filepath.Join(dir, "voice.m4a")
	ctx, cancel := context.WithTimeout(ctx, convertTime)
	defer cancel()
	if err := o.a.convertAudio(ctx, f.Path, to, "-vn", "-c:a", "aac", "-b:a", "64k"); err != nil {
		o.a.s.Log.Warn().Err(err).Msg("a voice note can't be converted; it goes out as it is")
		return f
	}
	info, err := os.Stat(to)
	if err != nil || info.Size() == 0 || info.Size() > FileLimit {
		return f
	}
	f.Path, f.mime, f.Size = to, "audio/mp4", info.Size()
	f.Name = strings.TrimSuffix(f.Name, filepath.Ext(f.Name)) + ".m4a"
	return f
}

// clean removes what was made on the way.
func (o *outbound) clean() {
	for _, dir := range o.temps {
		_ = os.RemoveAll(dir)
	}
}

// convertAudio runs ffmpeg on one file.
func (a *Adapter) convertAudio(ctx context.Context, from, to string, how ...string) error {
	args := append([]string{"-nostdin", "-v", "error", "-y", "-protocol_whitelist", "file", "-i", from}, how...)
	cmd := exec.CommandContext(ctx, a.ffmpeg, append(args, to)...)
	cmd.WaitDelay = time.Second
	return cmd.Run()
}

// isADTS reports whether audio is AAC without a container, which players and speech recognition refuse.
func isADTS(head []byte) bool { return len(head) >= 2 && head[0] == 0xff && head[1]&0xf6 == 0xf0 }

// remux puts AAC without a container into an m4a file and writes that to w. false: it could not, and nothing was
// written.
func (a *Adapter) remux(ctx context.Context, raw []byte, limit int64, w io.Writer) bool {
	dir, err := os.MkdirTemp("", "herald-voice-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	from, to := filepath.Join(dir, "voice.aac"), filepath.Join(dir, "voice.m4a")
	if os.WriteFile(from, raw, 0o600) != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, remuxTime)
	defer cancel()
	if err := a.convertAudio(ctx, from, to, "-c:a", "copy"); err != nil {
		a.s.Log.Warn().Err(err).Msg("a voice note can't be put into an m4a file; it is used as it is")
		return false
	}
	made, err := os.ReadFile(to)
	if err != nil || len(made) == 0 || int64(len(made)) > limit {
		return false
	}
	_, err = io.Copy(w, bytes.NewReader(made))
	return err == nil
}

// isRawVoice reports whether an attachment is one that may have to be remuxed.
func isRawVoice(at platforms.Attachment) bool {
	return at.Kind == platforms.Voice && (at.MIME == "audio/mp4" || at.MIME == "audio/aac")
}
