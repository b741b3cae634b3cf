package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// BuiltImage names the image that is built from a Dockerfile: another text has another name.
func BuiltImage(dockerfile []byte) string { return "herald-sandbox:" + digest(string(dockerfile)) }

// image makes sure that the engine has the image, and returns its entrypoint.
func (l lifecycle) image(ctx context.Context) (entrypoint []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, imageWait)
	defer cancel()
	for try := 0; ; try++ {
		r, err := l.engine.api.ImageInspect(ctx, l.opts.Image)
		if err == nil {
			if r.Config != nil {
				entrypoint = r.Config.Entrypoint
			}
			return entrypoint, nil
		}
		if try > 0 || !cerrdefs.IsNotFound(err) {
			return nil, fmt.Errorf("image %s: %w", l.opts.Image, err)
		}
		if err := l.fetch(ctx); err != nil {
			return nil, err
		}
	}
}

// fetch builds or pulls the image.
func (l lifecycle) fetch(ctx context.Context) error {
	if len(l.opts.Dockerfile) > 0 {
		if err := l.buildImage(ctx); err != nil {
			return fmt.Errorf("image %s could not be built: %w; set terminal.docker_image to one that the engine has", l.opts.Image, err)
		}
		return nil
	}
	l.tell("pulling the image " + l.opts.Image)
	r, err := l.engine.api.ImagePull(ctx, l.opts.Image, client.ImagePullOptions{})
	if err == nil {
		err = l.follow(r)
		r.Close()
	}
	if err != nil {
		return fmt.Errorf("image %s is not there and could not be pulled: %w; pull it, or set terminal.docker_image to one that the engine has", l.opts.Image, err)
	}
	return nil
}

func (l lifecycle) buildImage(ctx context.Context) error {
	l.tell("building the image " + l.opts.Image + " (some minutes, once)")
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	err := errors.Join(w.WriteHeader(&tar.Header{Name: "Dockerfile", Mode: 0o644, Size: int64(len(l.opts.Dockerfile))}))
	if err == nil {
		_, err = w.Write(l.opts.Dockerfile)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	r, err := l.engine.api.ImageBuild(ctx, &files, client.ImageBuildOptions{Tags: []string{l.opts.Image}, Dockerfile: "Dockerfile",
		Remove: true, ForceRemove: true,
		Labels: map[string]string{labelAgent: "1"}})
	if err != nil {
		return err
	}
	defer r.Body.Close()
	return l.follow(r.Body)
}

// follow reads the engine's report to its end, shows a line of it now and then, and returns the error that it tells of.
func (l lifecycle) follow(r io.Reader) error {
	dec := json.NewDecoder(r)
	var shown time.Time
	for {
		var line struct {
			Stream string `json:"stream"`
			Status string `json:"status"`
			ID     string `json:"id"`
			Error  string `json:"error"`
		}
		if err := dec.Decode(&line); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if line.Error != "" {
			return errors.New(strings.TrimSpace(line.Error))
		}
		text := strings.TrimSpace(line.Stream + line.Status)
		if line.ID != "" {
			text = line.ID + ": " + text
		}
		if text != "" && time.Since(shown) > time.Second {
			shown = time.Now()
			l.tell(text)
		}
	}
}
