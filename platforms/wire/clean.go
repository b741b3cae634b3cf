package wire

import (
	"context"
	"errors"
	"net/url"
	"strings"
)

// cleanError is an error whose text holds no secret. It hides its cause, whose text may, except for the two errors of
// contexts.
type cleanError struct {
	text  string
	cause error
}

func (e *cleanError) Error() string { return e.text }
func (e *cleanError) Unwrap() error { return e.cause }

// Clean returns err with another text. Of its causes only context.Canceled and context.DeadlineExceeded stay: the texts of
// others may hold what text leaves out. A nil err stays nil.
func Clean(err error, text string) error {
	if err == nil {
		return nil
	}
	var cause error
	switch {
	case errors.Is(err, context.Canceled):
		cause = context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		cause = context.DeadlineExceeded
	}
	return &cleanError{text, cause}
}

// Scrub replaces secrets in a text, also as a path or a query would carry them. Secrets of fewer than four bytes are left: they
// would take ordinary words out.
func Scrub(text string, secrets ...string) string {
	for _, secret := range secrets {
		if len(secret) < 4 {
			continue
		}
		for _, form := range [...]string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
			text = strings.ReplaceAll(text, form, "***")
		}
	}
	return text
}

// Bare returns the cause of an error of net/http without its method and URL, which may hold a token; any other error as it is.
func Bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// Redact returns err as Clean does, with the text of err without its URL (Bare) and without secrets (Scrub).
func Redact(err error, secrets ...string) error {
	if err == nil {
		return nil
	}
	return Clean(err, Scrub(Bare(err).Error(), secrets...))
}
