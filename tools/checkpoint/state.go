package checkpoint

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// state is the content of a path: "gone", "link:" and the hash of its target, or "file:" or "exec:" and the hash of its
// bytes. Two equal states are the same to a rollback.
type state string

const gone state = "gone"

// errNoContent is about a path that is neither a file nor a link.
var errNoContent = errors.New("is neither a file nor a link")

// stateOf reads a path. An error means that its content can't be known.
func stateOf(path string) (state, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), isNotDir(err):
		return gone, nil
	case err != nil:
		return "", err
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256([]byte(target))
		return state("link:" + hex.EncodeToString(sum[:])), nil
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s %w", path, errNoContent)
	}
	sum, err := hashFile(path, sha256.New())
	if err != nil {
		return "", err
	}
	if info.Mode()&0o100 != 0 {
		return state("exec:" + sum), nil
	}
	return state("file:" + sum), nil
}

func hashFile(path string, h hash.Hash) (string, error) {
	f, err := openRegular(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// object is a path of a commit's tree.
type object struct {
	mode string // "100644", "100755", "120000"
	hash string
}

// same reports whether a path of the disk is what a commit holds.
func (o object) same(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return err == nil && o.mode == "120000" && blobOf([]byte(target)) == o.hash
	case !info.Mode().IsRegular() || o.mode == "120000" || (o.mode == "100755") != (info.Mode()&0o100 != 0):
		return false
	}
	h := sha1.New() // git's own name of the content; nothing is secured by it
	fmt.Fprintf(h, "blob %d\x00", info.Size())
	sum, err := hashFile(path, h)
	return err == nil && sum == o.hash
}

func blobOf(data []byte) string {
	h := sha1.New()
	h.Write([]byte("blob " + strconv.Itoa(len(data)) + "\x00"))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// parseTree reads "git ls-tree -z" lines: mode, kind, hash, tab, path.
func parseTree(out []byte) map[string]object {
	tree := map[string]object{}
	for _, line := range names(out) {
		head, path, ok := strings.Cut(line, "\t")
		fields := strings.Fields(head)
		if ok && len(fields) == 3 && fields[1] == "blob" {
			tree[path] = object{fields[0], fields[2]}
		}
	}
	return tree
}
