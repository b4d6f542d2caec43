"""``python -m bezoar`` is ``bezoar``."""

from bezoar.cli import main

if __name__ == "__main__":
    main()
