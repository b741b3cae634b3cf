package page_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/gatewaytest"
	"herald/gateway/model/modeltest"
	"herald/platforms/web/browsertest"
)

// request sends a request to the daemon with headers, and follows nothing.
func request(h *gatewaytest.House, method, path string, headers ...string) *http.Response {
	h.T.Helper()
	req, err := http.NewRequest(method, strings.TrimSuffix(h.Gateway.URL(), "/")+path, nil)
	require.NoError(h.T, err)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	require.NoError(h.T, err)
	_ = resp.Body.Close()
	return resp
}

// The pages of the jobs stand behind the same door as the chat: nobody without the password, and nothing that another
// site's page asks for (P7, P13).
func TestCron_ThePagesAreGuarded(t *testing.T) {
	h := gatewaytest.Build(t, modeltest.Answering(func(modeltest.Request) modeltest.Reply { return modeltest.Text("x") }))
	h.Env = append(h.Env, "HERALD_HTTP_TOKEN=a-token-of-the-house-tests")
	h.Run()
	j := h.Job(cron.Change{Prompt: new("x")})
	at := "/jobs/" + string(j.ID)
	const auth, token = "Authorization", "Bearer a-token-of-the-house-tests"
	for _, c := range []struct {
		method, path string
		headers      []string
		want         int
	}{
		{"GET", "/jobs", nil, http.StatusSeeOther}, // to the page on which one logs in
		{"GET", at, nil, http.StatusSeeOther},
		{"POST", at + "/pause", nil, http.StatusUnauthorized},
		{"GET", "/jobs", []string{auth, "Bearer wrong"}, http.StatusUnauthorized},
		{"POST", at + "/pause", []string{auth, token, "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"POST", at + "/pause", []string{auth, token, "Sec-Fetch-Site", "none"}, http.StatusForbidden},
		{"POST", at + "/pause", []string{auth, token, "Origin", "https://evil.example"}, http.StatusForbidden},
		{"GET", at + "/pause", []string{auth, token}, http.StatusMethodNotAllowed},
		{"GET", "/jobs", []string{auth, token}, http.StatusOK},
		{"GET", at, []string{auth, token}, http.StatusOK},
	} {
		resp := request(h, c.method, c.path, c.headers...)
		require.Equal(t, c.want, resp.StatusCode, "%s %s %v", c.method, c.path, c.headers)
		found, err := h.Gateway.Scheduled().Book.Find(context.Background(), string(j.ID))
		require.NoError(t, err)
		require.False(t, found.Plan.Paused, "%s %s %v", c.method, c.path, c.headers)
	}
	resp := request(h, "POST", at+"/pause", auth, token, "Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusSeeOther, resp.StatusCode)
	found, err := h.Gateway.Scheduled().Book.Find(context.Background(), string(j.ID))
	require.NoError(t, err)
	require.True(t, found.Plan.Paused)
	require.Equal(t, http.StatusMisdirectedRequest, requestAs(h, "evil.example", "/jobs").StatusCode)
}

// requestAs asks under another host name, as a page does whose name was bound to this machine.
func requestAs(h *gatewaytest.House, host, path string) *http.Response {
	h.T.Helper()
	req, err := http.NewRequest("GET", strings.TrimSuffix(h.Gateway.URL(), "/")+path, nil)
	require.NoError(h.T, err)
	req.Host = host
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(h.T, err)
	_ = resp.Body.Close()
	return resp
}

// A person in a real browser: from the chat to the list, to a job, its run, its output, and the buttons.
func TestCron_ThePagesInABrowser(t *testing.T) {
	b := browsertest.Start(t)
	h := gatewaytest.Build(t, modeltest.Answering(func(modeltest.Request) modeltest.Reply { return modeltest.Text("All **quiet** today.") }))
	h.Env = append(h.Env, "HERALD_TIMEZONE=UTC")
	h.Run()
	j := h.Job(cron.Change{Name: new("Morning news"), Prompt: new("Read the news."), Deliver: new("telegram:7"),
		Schedule: new("every weekday at 9am")})
	h.Telegram.Say(7, "/whoami")
	h.Until("a command was answered", func() bool { return len(h.Texts(7)) > 0 })
	h.Ran(j.ID)

	p := b.Open(t, h.Gateway.URL())
	p.WaitText("Scheduled jobs")
	p.Click(`a[href="/jobs"]`)
	p.WaitText("Morning news")
	p.WaitText("telegram:7")
	p.WaitText("arrived")
	p.Screenshot("jobs-list")
	p.Click(`a[href="/jobs/` + string(j.ID) + `"]`)
	p.WaitText("What it asks")
	p.WaitText("Read the news.")
	p.Screenshot("jobs-job")
	light := browsertest.Eval[string](p, "getComputedStyle(document.body).backgroundColor")
	p.Dark(true)
	require.NotEqual(t, light, browsertest.Eval[string](p, "getComputedStyle(document.body).backgroundColor"))
	p.Screenshot("jobs-job-dark")
	p.Dark(false)
	p.Click(`form[action$="/pause"] button`)
	p.WaitText("Resume")
	p.Click(`form[action$="/resume"] button`)
	p.Wait(`document.querySelector('form[action$="/pause"]')`)
	p.Click(`a[href*="/output/"]`)
	p.Wait(`document.querySelector(".output strong")?.innerText === "quiet"`)
	p.Go(h.Gateway.URL() + "jobs/" + string(j.ID))
	p.Viewport(390, 800, true)
	require.LessOrEqual(t, browsertest.Eval[int](p, "document.documentElement.scrollWidth"), 390, "a phone scrolls down alone")
	p.Screenshot("jobs-phone")
	p.Click("details summary")
	p.Click(`form[action$="/remove"] button`)
	p.WaitText("There are none yet")
	require.Empty(t, p.Problems())
	_, err := h.Gateway.Scheduled().Book.Find(context.Background(), string(j.ID))
	require.Error(t, err)
}
