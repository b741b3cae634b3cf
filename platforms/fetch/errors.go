package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
)

// ErrForbidden is wrapped by errors about a place that may not be asked.
var ErrForbidden = errors.New("this address may not be fetched")

// TooLargeError says that a body has more bytes than the caller allows.
type TooLargeError struct {
	// Limit is the most bytes that would have been taken.
	Limit int64
}

// Error names the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the file has more than %d bytes", e.Limit)
}

// StatusError is an answer other than 200.
type StatusError struct {
	Host string
	Code int
}

// Error names the host and the code.
func (e *StatusError) Error() string { return fmt.Sprintf("%s answered %d", e.Host, e.Code) }

func forbidden(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrForbidden, fmt.Sprintf(format, args...))
}

// Clean makes an error of a request through HTTP fit for people and logs, as Get's are: it names the host, and never the
// URL nor what the server sent. ctx is the request's.
//
// *url.Error holds the whole URL, and what a proxy or a resolver says may hold more.
func Clean(ctx context.Context, host string, err error) error {
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
		err = cause
	}
	var ue *url.Error
	for errors.As(err, &ue) {
		err = ue.Err
	}
	var large *TooLargeError
	var status *StatusError
	var dns *net.DNSError
	switch {
	case errors.Is(err, ErrForbidden), errors.As(err, &large), errors.As(err, &status),
		errors.Is(err, errRedirects), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, errStalled):
		return fmt.Errorf("%s: %w", host, errStalled)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s did not answer in time: %w", host, context.DeadlineExceeded)
	case errors.As(err, &dns):
		return fmt.Errorf("the name %s can't be resolved", host)
	}
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &op):
		return fmt.Errorf("%s: %s: %w", host, op.Op, op.Err)
	case errors.As(err, &cert):
		return fmt.Errorf("%s: its certificate is not valid: %w", host, cert.Err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s ended the connection early: %w", host, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("%s: the connection failed", host) // the text may quote a redirect or what the server sent
}
