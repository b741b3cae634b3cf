package telegram

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest"
)

// TestAdapter_ConformanceWebhook runs the suite on the other way in.
func TestAdapter_ConformanceWebhook(t *testing.T) {
	platformtest.Run(t, platformtest.Harness{
		New: func(t *testing.T) platformtest.World {
			w := &webhookWorld{world: startWorld(t)}
			server := httptest.NewServer(w)
			t.Cleanup(server.Close)
			w.url = server.URL
			return w
		},
		Lacks: lacks,
		Skip: map[string]string{
			"deaf is not ready":                  "a webhook hears nothing of a service that does not call; getWebhookInfo is asked every minute",
			"a storm of server errors passes":    "a webhook hears nothing of a service that does not call",
			"reconnecting leaves one connection": "the service opens the connections",
		},
	})
}

// webhookWorld has Herald's listener beside the service.
type webhookWorld struct {
	*world
	url     string
	running atomic.Pointer[http.ServeMux]
}

func (w *webhookWorld) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if mux := w.running.Load(); mux != nil {
		mux.ServeHTTP(rw, r)
		return
	}
	http.Error(rw, "starting", http.StatusServiceUnavailable)
}

func (w *webhookWorld) Adapter(t testing.TB) platforms.Adapter {
	o := w.options()
	o.WebhookURL, o.WebhookSecret = w.url+DefaultWebhookPath, hookSecret
	a, err := New(o)
	require.NoError(t, err)
	mux := http.NewServeMux()
	for pattern, handler := range a.Routes() {
		mux.Handle(pattern, handler)
	}
	w.running.Store(mux)
	return a
}

func (w *webhookWorld) Deafen() bool   { return false }
func (w *webhookWorld) Drop() bool     { return false }
func (w *webhookWorld) Receivers() int { return 0 }
