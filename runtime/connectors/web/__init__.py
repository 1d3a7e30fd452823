"""The web: an HTTP endpoint that is polled, websockets, and sockets of lines; what of it can be read again."""
