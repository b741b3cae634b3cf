package redact

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// body is the random part of made-up tokens; split so that scanners of source code stay quiet.
const body = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6kL9nP2rS5tU8wX"

func TestRedactor_String_KnownTokens(t *testing.T) {
	for _, f := range forms {
		var b strings.Builder
		for i := 0; b.Len() < f.min+4; i++ {
			for _, c := range []byte{body[i%len(body)], "4b7c1e9a"[i%8], "Q4B7"[i%4]} {
				if f.set(c) {
					b.WriteByte(c)
					break
				}
			}
		}
		token := f.prefix + b.String()
		got := New().String("use " + token + " for it")
		require.NotContains(t, got, token, f.prefix)
		require.Equal(t, "use "+mask(token)+" for it", got, f.prefix)
	}
	require.GreaterOrEqual(t, len(forms), 60)
}

func TestRedactor_String_Secrets(t *testing.T) {
	jwt := "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NSJ9." + "c2lnbmF0dXJlLXNpZw"
	for _, tt := range []struct{ in, want string }{
		{"OPENAI_API_KEY=abc", "OPENAI_API_KEY=***"},
		{"export DB_PASSWORD='hunter2'", "export DB_PASSWORD='***'"},
		{"DB_PASSWORD=12345678", "DB_PASSWORD=***"},
		{"AWS_SECRET_ACCESS_KEY=" + body[:40], "AWS_SECRET_ACCESS_KEY=aB3dE6...kL9n"},
		{"ENCRYPTION_KEY=0123456789abcdef0123", "ENCRYPTION_KEY=012345...0123"},
		{"password: hunter2", "password: ***"},
		{`password = "s3cret!"`, `password = "***"`},
		{"api_key: 0a1b2c3d4e5f", "api_key: ***"},
		{`{"apiKey": "abcdefgh"}`, `{"apiKey": "***"}`},
		{`{"password":"correct horse battery"}`, `{"password":"correc...tery"}`},
		{`{"content":"1|DB_TOKEN=abc123def\n2|x"}`, `{"content":"1|DB_TOKEN=***\n2|x"}`},
		{`{"content":"DB_TOKEN=abc\nAPI_TOKEN=def\n"}`, `{"content":"DB_TOKEN=***\nAPI_TOKEN=***\n"}`},
		{`{"text":"{\"client_secret\": \"abcdef123\"}"}`, `{"text":"{\"client_secret\": \"***\"}"}`},
		{"Authorization: Bearer abcd1234efgh", "Authorization: Bearer ***"},
		{"authorization: Basic dXNlcjpwYXNzd29yZA==", "authorization: Basic dXNlcj...ZA=="},
		{`-H "X-Api-Key: 12ab34cd56"`, `-H "X-Api-Key: ***"`},
		{"sent with Bearer 0123456789abcdef0", "sent with Bearer ***"},
		{"https://h/cb?access_token=abc&x=1", "https://h/cb?access_token=***&x=1"},
		{"https://h/?a=1&sig=0123456789abcdef0123456789#f", "https://h/?a=1&sig=012345...6789#f"},
		{"https://h/?X-Amz-Signature=0123456789abcdef0123", "https://h/?X-Amz-Signature=012345...0123"},
		{"postgres://app:s3cr3t@db:5432/x", "postgres://app:***@db:5432/x"},
		{"token " + jwt + ".", "token " + mask(jwt) + "."},
		{"https://api.telegram.org/bot123456789:" + body[:35] + "/getMe", "https://api.telegram.org/bot" + mask("123456789:"+body[:35]) + "/getMe"},
		{"-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----\nrest", keyBlock + "\nrest"},
		{"-----BEGIN PRIVATE KEY-----\nMIIEabc\nMIIE", keyBlock},
		{`"-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----\n"`, `"` + keyBlock + `\n"`},
	} {
		assert.Equal(t, tt.want, New().String(tt.in), "input %s", tt.in)
	}
}

// What must stay as it is: prose, code, configuration that points to secrets, our own results.
func TestRedactor_String_LeavesOrdinaryTextAlone(t *testing.T) {
	for _, in := range []string{
		"", "a", "=", ":", "the task-force asks a risk-based question",
		"class sk-circle-fade-dot-animation-spinner", "scikit: sk-learn",
		"max_tokens=4096, temperature=0.2", "MAX_TOKENS=4096", "TOKEN_LIMIT=4096", `"total_tokens": 51234`,
		"token := lexer.Next()", "token = parser.next_token()", `token = os.environ["TOKEN"]`, "API_KEY = os.getenv('API_KEY')",
		"password: string;", "password: str = None", "func f(password string, token Token)", "if token == nil {", "token != other1234",
		"API_KEY: ${{ secrets.API_KEY }}", "export TOKEN=$GITHUB_TOKEN", "PASSWORD=$(cat /run/secrets/x)", "TOKEN_FILE=/run/secrets/token1",
		"the password: choose a long one", "Authorization: required for all users", "uses Bearer authentication everywhere",
		"The secret: there is none.", "secret garden, token ring, key=value, key: value1234", "PUBLIC_KEY=ssh-ed25519",
		`{"session_id":"20261129_164940_1f2e3d4c","row":12}`, "commit 3f786850e387550fdab836ed7e6dc881de23001b",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"550e8400-e29b-41d4-a716-446655440000", "https://example.com/path:8080/x@y", "mailto:someone@example.com", "http://localhost:8080/a@b",
		"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA", "eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXX0=",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "12:30:45 and 2026-11-29T16:49:40Z", "std::token::Kind", "a ? b : c",
		"API_KEY=your_key_here", "API_KEY=<your key>", "password=***", "npm_config_cache=/tmp/x", "hf_transfer", "key-value stores", "SG. 3 means",
		"foo.token = bar.token", "$token = $_POST['token'];", `"token": "The token of the page"`, "Token count: 512",
	} {
		assert.Equal(t, in, New().String(in))
	}
}

func TestRedactor_String_Literals(t *testing.T) {
	r := New("correct horse", "short", "", `quo"ted-value`, "correct horse battery staple")
	require.Equal(t, "x *** y", r.String("x correct horse y"))
	require.Equal(t, "x correc...aple y", r.String("x correct horse battery staple y"), "the longer secret wins")
	require.Equal(t, "q=***", r.String("q=correct+horse"), "as in a query")
	require.Equal(t, `{"a":"***"}`, r.String(`{"a":"quo\"ted-value"}`), "as in JSON")
	require.Equal(t, "short", r.String("short"), "too short to be told from a word")
	var none *Redactor
	require.Equal(t, "plain", none.String("plain"))
}

func TestRedactor_String_Idempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"TOKEN=", "password: ", "\"apiKey\": \"", "sk-", body, "Bearer ", "https://u:", "@h", "\n", "eyJ", ".", "123456789:",
			"-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "Authorization: ", "?sig=", "\\\"", "'"}))
		s := strings.Join(rapid.SliceOf(part).Draw(t, "parts"), "")
		r := New("literal-secret")
		once := r.String(s)
		require.Equal(t, once, r.String(once))
	})
}

func TestRedactor_String_LinearTime(t *testing.T) {
	for _, unit := range []string{"sk-", "eyJ-", "TOKEN=", "a=", ":", "-----BEGIN PRIVATE KEY-----", "\"password\": \"", "https://a:", "M", "1", "bearer ", "\\", "-", "token:\"a"} {
		s := strings.Repeat(unit, 256<<10/len(unit))
		began := time.Now()
		New("literal-secret").String(s)
		require.Less(t, time.Since(began), 10*time.Second, "unit %q; quadratic work takes minutes", unit)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("TOKEN=abc password: hunter2 sk-" + body)
	f.Add("-----BEGIN PRIVATE KEY-----\nabc")
	f.Add("00000000:0000000000000000000000000000B000000000:000000000000000000050d00000I000000") // a mask made a new token
	f.Add(`{"a":"{\"secret\":\"x1y2z3a4\"}"}`)
	f.Fuzz(func(t *testing.T, s string) {
		r := New("literal-secret")
		once := r.String(s)
		if utf8.ValidString(s) && !utf8.ValidString(once) {
			t.Fatalf("broken characters: %q from %q", once, s)
		}
		if twice := r.String(once); twice != once {
			t.Fatalf("not idempotent: %q then %q from %q", once, twice, s)
		}
		if strings.Contains(once, "literal-secret") {
			t.Fatalf("literal left: %q", once)
		}
	})
}

func BenchmarkRedact(b *testing.B) {
	s := strings.Repeat("func main() { token := lexer.Next(); fmt.Println(\"a: b\", x.y) } // key = value\n", 1000)
	r := New("literal-secret")
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		r.String(s)
	}
}
