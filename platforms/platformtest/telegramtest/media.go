package telegramtest

import (
	"path"
	"strconv"
	"strings"
)

// uploaded finds the file of a field: in the part of the field's name, in the part that "attach://" names, or by the
// id of a file that the service has. The caller holds mu.
func (t *Server) uploaded(r *request, field, value string) (stored, bool) {
	if f, ok := r.files[field]; ok {
		return f, true
	}
	if part, ok := strings.CutPrefix(value, "attach://"); ok {
		f, ok := r.files[part]
		return f, ok
	}
	f, ok := t.files[value]
	return f, ok
}

func checkMedia(kind string, f stored) error {
	switch {
	case len(f.body) == 0:
		return refuse(400, "file must be non-empty")
	case kind == "photo" && len(f.body) > 10<<20:
		return refuse(400, "too big photo: file size must be less than 10 MB")
	case kind == "photo" && strings.HasPrefix(string(f.body), "not a picture"):
		return refuse(400, "IMAGE_PROCESS_FAILED")
	}
	return nil
}

// store keeps an uploaded file. The caller holds mu.
func (t *Server) store(f stored) wireFile {
	t.nextFile++
	id := "file-" + strconv.Itoa(t.nextFile)
	t.files[id] = f
	return wireFile{ID: id, Unique: "u" + id, Name: f.name, MIME: f.mime, Size: len(f.body)}
}

func (t *Server) getFile(r *request) (any, error) {
	f, ok := t.files[r.params["file_id"]]
	if !ok {
		return nil, refuse(400, "wrong file_id or the file is temporarily unavailable")
	}
	if int64(len(f.body)) > t.o.MaxDownload {
		return nil, refuse(400, "file is too big")
	}
	name := "documents/" + r.params["file_id"] + path.Ext(f.name)
	if t.o.LocalFiles != "" {
		name = path.Join(t.o.LocalFiles, name)
	}
	return map[string]any{"file_id": r.params["file_id"], "file_unique_id": "u" + r.params["file_id"], "file_size": len(f.body), "file_path": name}, nil
}
