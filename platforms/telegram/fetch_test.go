package telegram

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/telegramtest"
)

func TestFetch_TooBigNamesTheLimit(t *testing.T) {
	w, a := sender(t, nil)
	w.fake.Break(telegramtest.Fault{Trouble: telegramtest.AnswerStatus, Method: "getFile", Status: 400, Description: "Bad Request: file is too big"})
	err := a.Fetch(t.Context(), platforms.Attachment{Name: "film.mp4", Ref: "f"}, 1<<30, io.Discard)
	require.ErrorContains(t, err, "film.mp4")
	require.ErrorContains(t, err, "20 MB")
	require.Equal(t, platforms.TooLong, platforms.AsSendError(err).Kind)

	public, err := New(Options{Token: testToken})
	require.NoError(t, err)
	err = public.Fetch(t.Context(), platforms.Attachment{Name: "film.mp4", Ref: "f", Size: publicDownload + 1}, 1<<30, io.Discard)
	require.ErrorContains(t, err, "20 MB", "known without a request")
	require.ErrorContains(t, a.Fetch(t.Context(), platforms.Attachment{Name: "x", Ref: "f", Size: 10}, 5, io.Discard), "the limit is")
	require.ErrorContains(t, a.Fetch(t.Context(), platforms.Attachment{Name: "x"}, 5, io.Discard), "names no file")
	require.ErrorContains(t, a.Fetch(t.Context(), platforms.Attachment{Name: "x", Ref: "unknown"}, 5, io.Discard), "wrong file_id")
}

// A private server in local mode names a path. Only what lies below the root is read.
func TestFetch_LocalMode(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	outside := filepath.Join(t.TempDir(), "secret.txt")
	require.NoError(t, os.MkdirAll(root, 0o700))
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "link.txt")))

	fake := telegramtest.New(telegramtest.Options{Token: testToken, LocalFiles: root})
	url, err := fake.Start()
	require.NoError(t, err)
	t.Cleanup(fake.Close)
	w := &world{fake: fake, url: url}
	fake.Write(telegramtest.Post{Chat: person, Files: []telegramtest.File{{Kind: "document", Name: "a.txt", Body: []byte("inside")}}})
	require.NoError(t, fake.WriteLocal())

	o := w.options()
	a, err := New(o)
	require.NoError(t, err)
	t.Cleanup(a.moves.CloseIdleConnections)
	require.ErrorContains(t, a.Fetch(t.Context(), platforms.Attachment{Ref: "file-1"}, 100, io.Discard), "local_root")

	o.LocalRoot = root
	b, err := New(o)
	require.NoError(t, err)
	t.Cleanup(b.moves.CloseIdleConnections)
	var got bytes.Buffer
	require.NoError(t, b.Fetch(t.Context(), platforms.Attachment{Ref: "file-1"}, 100, &got))
	require.Equal(t, "inside", got.String())
	require.Error(t, b.Fetch(t.Context(), platforms.Attachment{Ref: "file-1"}, 3, io.Discard))

	for _, path := range []string{outside, root + "/../" + filepath.Base(outside), root + "/link.txt", root, root + "/none"} {
		got.Reset()
		require.Error(t, b.readLocal(path, 100, &got), path)
		require.Empty(t, got.String(), path)
	}
}

func TestFetch_RefusesPathsThatClimb(t *testing.T) {
	_, a := sender(t, nil)
	require.ErrorContains(t, a.download(t.Context(), "documents/../../getMe", 10, io.Discard), `".."`)
	require.ErrorContains(t, a.download(t.Context(), "documents/none.txt", 10, io.Discard), "404")
}
