package teams

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
)

// The icons that Teams wants: a full square of colour, 192 by 192, and a white outline on nothing, 32 by 32. Both show a
// speech bubble with three dots. They are drawn here, so that no picture has to be kept.
const (
	colorSize   = 192
	outlineSize = 32
	accentColor = "#3457D5"
)

var accent = color.NRGBA{0x34, 0x57, 0xD5, 0xFF}

// icons returns both as PNG.
func icons() (full, outline []byte, err error) {
	if full, err = draw(colorSize, accent, func(x, y float64) bool {
		return bubble(x, y) <= 0 && dots(x, y) > 0
	}); err != nil {
		return nil, nil, err
	}
	outline, err = draw(outlineSize, color.NRGBA{0xFF, 0xFF, 0xFF, 0}, func(x, y float64) bool {
		d := bubble(x, y)
		return d <= 0 && d > -0.07 || dots(x, y) <= 0
	})
	return full, outline, err
}

// draw paints white, on a ground, where inside says so. Coordinates go from 0 to 1; each pixel is the mean of 16 points.
func draw(size int, ground color.NRGBA, inside func(x, y float64) bool) ([]byte, error) {
	const grid = 4
	img := image.NewNRGBA(image.Rect(0, 0, size, size))
	for py := range size {
		for px := range size {
			hits := 0
			for i := range grid * grid {
				x := (float64(px) + (float64(i%grid)+0.5)/grid) / float64(size)
				y := (float64(py) + (float64(i/grid)+0.5)/grid) / float64(size)
				if inside(x, y) {
					hits++
				}
			}
			img.SetNRGBA(px, py, blend(ground, float64(hits)/(grid*grid)))
		}
	}
	var out bytes.Buffer
	err := png.Encode(&out, img)
	return out.Bytes(), err
}

// blend lays white of a strength over a colour. Over nothing it is white that lets through.
func blend(ground color.NRGBA, strength float64) color.NRGBA {
	mix := func(c uint8) uint8 { return uint8(math.Round(float64(c) + (255-float64(c))*strength)) }
	if ground.A == 0 {
		return color.NRGBA{0xFF, 0xFF, 0xFF, uint8(math.Round(255 * strength))}
	}
	return color.NRGBA{mix(ground.R), mix(ground.G), mix(ground.B), 0xFF}
}

// bubble is below 0 inside a speech bubble, and tells the distance to its border.
func bubble(x, y float64) float64 {
	const left, right, top, bottom, corner = 0.2, 0.8, 0.22, 0.66, 0.12
	dx := math.Max(math.Max(left+corner-x, x-(right-corner)), 0)
	dy := math.Max(math.Max(top+corner-y, y-(bottom-corner)), 0)
	box := math.Hypot(dx, dy) - corner
	if dx == 0 && dy == 0 {
		box = math.Max(math.Max(left-x, x-right), math.Max(top-y, y-bottom))
	}
	// The tail is a triangle below the left half.
	tail := math.Max(math.Max(0.32-x, y-0.82), (x-0.32)-(0.82-y)*0.9)
	if y < bottom-0.1 {
		tail = 1
	}
	return math.Min(box, tail)
}

// dots is below 0 inside one of three dots.
func dots(x, y float64) float64 {
	d := math.Inf(1)
	for _, cx := range [...]float64{0.36, 0.5, 0.64} {
		d = math.Min(d, math.Hypot(x-cx, y-0.44)-0.045)
	}
	return d
}
