package model

import (
	"context"
	"errors"
)

// Fallback returns a model that asks each of models in order until one answers. The next one is asked when
// the error is Auth, NotFound, RateLimit, Overloaded, Down or Invalid; wrap each model with Retry first, so
// that this happens after its retries. ContextLength, BadRequest and Policy come back at once: they are
// about the request, and the loop has to change it. Response.Model says who answered. When all fail, the
// error is the first model's, joined with the others'.
//
// It panics without a model. A single model is returned as it is.
func Fallback(models ...Model) Model {
	switch len(models) {
	case 0:
		panic("model: Fallback needs at least one model")
	case 1:
		return models[0]
	}
	return &fallback{models: models}
}

type fallback struct{ models []Model }

// Info is the first model's, with the smallest window of all: what fits there fits everywhere.
func (f *fallback) Info() Info {
	info := f.models[0].Info()
	for _, m := range f.models[1:] {
		if c := m.Info().Context; c > 0 && c < info.Context {
			info.Context = c
		}
	}
	return info
}

// CloseIdleConnections closes what the models keep open between calls.
func (f *fallback) CloseIdleConnections() {
	for _, m := range f.models {
		CloseIdle(m)
	}
}

func (f *fallback) Stream(ctx context.Context, req Request, on func(Delta)) (Response, error) {
	out := restartable{on: on}
	var all []error
	for i, m := range f.models {
		if i > 0 {
			out.restart()
		}
		resp, err := m.Stream(ctx, req, out.send)
		if err == nil {
			if resp.Model.Name == "" {
				resp.Model = m.Info()
			}
			return resp, nil
		}
		if ctx.Err() != nil {
			return Response{}, context.Cause(ctx)
		}
		var failed *Error
		if !errors.As(err, &failed) || !failed.fallsBack() {
			return Response{}, err
		}
		all = append(all, err)
	}
	return Response{}, joined(all)
}

// fallsBack reports whether another model may do better with the same request.
func (e *Error) fallsBack() bool {
	switch e.Kind {
	case Auth, NotFound, RateLimit, Overloaded, Down, Invalid:
		return true
	}
	return false
}

// joined returns the first error as an *Error whose cause names the others too.
func joined(all []error) error {
	var first *Error
	if len(all) == 1 || !errors.As(all[0], &first) {
		return all[0]
	}
	e := *first
	e.Err = errors.Join(append([]error{first.Err}, all[1:]...)...)
	return &e
}
