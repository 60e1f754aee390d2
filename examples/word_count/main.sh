printf '%s' "$ARG_TEXT" | {
    read -r lines words characters < <(wc -lwm)
    echo "line breaks: $lines, words: $words, characters: $characters"
}
