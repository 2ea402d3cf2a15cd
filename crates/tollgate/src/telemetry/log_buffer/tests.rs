use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::*;

const GENEROUS: Duration = Duration::from_mins(1);

/// An output whose writes block until the test receives them.
struct Pipe(SyncSender<String>);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.0.send(text).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn pipe() -> (Pipe, Receiver<String>) {
    let (sender, receiver) = sync_channel(0);
    (Pipe(sender), receiver)
}

fn buffer(capacity: usize, batches: bool) -> LogBuffer {
    let buffer = LogBuffer::new();
    {
        let mut state = buffer.lock();
        state.capacity = Some(capacity);
        state.batches = batches;
    }
    buffer
}

/// Runs the writer thread during `test`.
fn with_writer(buffer: &LogBuffer, out: impl Write + Send, test: impl FnOnce()) {
    thread::scope(|scope| {
        scope.spawn(|| {
            buffer.write_until_closed(out, |count| buffer.write(format!("dropped {count}\n").as_bytes(), true));
        });
        test();
        buffer.lock().is_closed = true;
        buffer.changed.notify_all();
    });
}

#[test]
fn write_drops_and_counts_lines_when_output_blocks() {
    let buffer = buffer(80, false);
    let (out, reader) = pipe();
    with_writer(&buffer, out, || {
        for _ in 0..100 {
            buffer.write(b"123456789\n", false);
        }
        let dropped = buffer.dropped_lines();
        assert_eq!(dropped, 93, "seven lines of ten bytes fit; the last eighth is for warnings");
        buffer.write(b"a warning\n", true);
        assert_eq!(buffer.dropped_lines(), dropped, "a warning found room");
        buffer.write(b"a warning\n", true);
        assert_eq!(buffer.dropped_lines(), dropped + 1);
        assert!(!buffer.flush(Duration::from_millis(10)), "nothing was read");

        let mut text = String::new();
        while !text.contains("dropped") {
            text += &reader.recv_timeout(GENEROUS).unwrap();
        }
        assert_eq!(text, "123456789\n".repeat(7) + "a warning\ndropped 94\n");
        buffer.write(b"again\n", false);
        assert_eq!(reader.recv_timeout(GENEROUS).unwrap(), "again\n");
    });
}

#[test]
fn write_keeps_order_of_lines_when_some_are_urgent() {
    let buffer = buffer(1 << 20, true);
    let mut out = Vec::new();
    with_writer(&buffer, &mut out, || {
        for number in 0..1_000 {
            buffer.write(format!("{number}\n").as_bytes(), number % 7 == 0);
        }
        assert!(buffer.flush(GENEROUS));
    });
    let numbers: Vec<_> = (0..1_000).map(|number| number.to_string()).collect();
    assert_eq!(String::from_utf8(out).unwrap(), numbers.join("\n") + "\n");
}

#[test]
fn line_waits_for_others_until_a_warning_comes() {
    let buffer = buffer(1 << 20, true);
    buffer.write(b"one\n", false);
    assert!(!buffer.lock().is_due);
    buffer.write(b"two\n", true);
    assert!(buffer.lock().is_due);
    let (out, reader) = pipe();
    with_writer(&buffer, out, || assert_eq!(reader.recv_timeout(GENEROUS).unwrap(), "one\ntwo\n"));
}

#[test]
fn line_is_written_soon_when_no_other_comes() {
    let buffer = buffer(1 << 20, true);
    let (out, reader) = pipe();
    with_writer(&buffer, out, || {
        buffer.write(b"one\n", false);
        assert_eq!(reader.recv_timeout(GENEROUS).unwrap(), "one\n");
    });
}

#[test]
fn lines_count_as_dropped_when_output_fails() {
    struct Broken;
    impl Write for Broken {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.starts_with(b"one") { Ok(4) } else { Err(io::ErrorKind::BrokenPipe.into()) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    assert_eq!(write_whole(&mut Broken, b"one\ntwo\nthree\n"), 2);
}

#[test]
fn flush_returns_at_once_when_there_is_no_writer() {
    assert!(LogBuffer::new().flush(GENEROUS));
}

#[test]
fn with_request_id_extends_text_and_json() {
    let id = "r-1".parse().unwrap();
    let line = |line: &[u8]| String::from_utf8(with_request_id(line, &id)).unwrap();
    assert_eq!(
        line(b"2026-11-21T09:08:07Z  WARN x: failed a=1\n"),
        "2026-11-21T09:08:07Z  WARN x: failed a=1 request.id=r-1\n"
    );
    assert_eq!(line(b"{\"level\":\"WARN\"}\n"), "{\"request.id\":\"r-1\",\"level\":\"WARN\"}\n");
}

#[test]
fn buffer_holds_4_mebibytes() {
    assert_eq!(CAPACITY, 4_194_304);
}
