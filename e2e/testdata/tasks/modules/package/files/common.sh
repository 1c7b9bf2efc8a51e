answer() { echo "{\"status\": \"$1\", \"family\": \"$2\"}"; }
