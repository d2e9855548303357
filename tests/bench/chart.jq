# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# chart.jq - results.json as an SVG picture.
"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"10\" height=\"10\"/>"
