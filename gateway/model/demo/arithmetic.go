package demo

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// sum answers an arithmetic question; nil for other texts.
func sum(text string) *step {
	expr := strings.ToLower(strings.TrimRight(strings.TrimSpace(text), " ?.!="))
	for _, w := range [...][2]string{
		{"multiplied by", "*"}, {"divided by", "/"}, {"to the power of", "^"}, {"plus", "+"}, {"minus", "-"}, {"times", "*"},
		{"×", "*"}, {"÷", "/"}, {"% of", "*0.01*"}, {"percent of", "*0.01*"}, {"squared", "^2"}, {"**", "^"},
	} {
		expr = strings.ReplaceAll(expr, w[0], w[1])
	}
	expr = strings.ReplaceAll(expr, " x ", "*")
	digits := false
	for _, r := range expr {
		if r >= '0' && r <= '9' {
			digits = true
		} else if !strings.ContainsRune("+-*/^().% \t", r) {
			return nil
		}
	}
	if !digits || !strings.ContainsAny(expr, "+-*/^%") {
		return nil
	}
	p := parser{s: strings.Join(strings.Fields(expr), "")}
	v, err := p.sum(0)
	if err == nil && p.i < len(p.s) {
		err = errors.New("it can't be read to its end")
	}
	if err != nil {
		return say("I can't work that out: " + err.Error() + ".")
	}
	return say(strings.TrimRight(strings.TrimSpace(text), " ?.!=") + " = " + number(v))
}

func number(v float64) string {
	if math.Abs(v) < 1e15 && v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 12, 64)
}

// parser reads sums, products, powers and parentheses.
type parser struct {
	s string
	i int
}

func (p *parser) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

func (p *parser) sum(depth int) (float64, error) {
	if depth > 100 {
		return 0, errors.New("it is nested too deep")
	}
	v, err := p.product(depth)
	for err == nil && (p.peek() == '+' || p.peek() == '-') {
		op := p.peek()
		p.i++
		var w float64
		if w, err = p.product(depth); op == '+' {
			v += w
		} else {
			v -= w
		}
	}
	return v, err
}

func (p *parser) product(depth int) (float64, error) {
	v, err := p.power(depth)
	for err == nil && strings.IndexByte("*/%", p.peek()) >= 0 && p.peek() != 0 {
		op := p.peek()
		p.i++
		var w float64
		if w, err = p.power(depth); err != nil {
			break
		}
		switch {
		case op == '*':
			v *= w
		case w == 0:
			return 0, errors.New("nothing can be divided by zero")
		case op == '/':
			v /= w
		default:
			v = math.Mod(v, w)
		}
	}
	return v, err
}

func (p *parser) power(depth int) (float64, error) {
	if depth > 100 {
		return 0, errors.New("it is nested too deep")
	}
	if p.peek() == '-' {
		p.i++
		v, err := p.power(depth + 1)
		return -v, err
	}
	v, err := p.atom(depth)
	if err == nil && p.peek() == '^' {
		p.i++
		w, err := p.power(depth + 1)
		if err != nil {
			return 0, err
		}
		v = math.Pow(v, w)
	}
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, errors.New("the result is no number that I can write")
	}
	return v, err
}

func (p *parser) atom(depth int) (float64, error) {
	if p.peek() == '(' {
		p.i++
		v, err := p.sum(depth + 1)
		if err != nil {
			return 0, err
		}
		if p.peek() != ')' {
			return 0, errors.New("a parenthesis is missing")
		}
		p.i++
		return v, nil
	}
	start := p.i
	for c := p.peek(); c >= '0' && c <= '9' || c == '.'; c = p.peek() {
		p.i++
	}
	v, err := strconv.ParseFloat(p.s[start:p.i], 64)
	if err != nil {
		return 0, errors.New("a number is missing")
	}
	return v, nil
}
